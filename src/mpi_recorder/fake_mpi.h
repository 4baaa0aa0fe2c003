#pragma once

#include <map>
#include <set>
#include <vector>

#include "mpi_recorder/mpi_library.h"

// An MPI library of a few communicators, for tests: handles are small numbers.
namespace diapason::mpi_recorder {

struct FakeComm {
  int ranks = 4;
  int rank = 0;
  int remote = 0;  // above 0: an intercommunicator
  int topology = 0;
  int sources = 0;
};

struct FakeMpi {
  static constexpr Word kNull = 1;
  static constexpr Word kInt = 100;     // 4 bytes
  static constexpr Word kDouble = 101;  // 8 bytes
  static constexpr Word kSum = 200;
  static constexpr Word kLast = 201;  // not commutative

  inline static std::map<Word, FakeComm> comms;
  inline static std::set<Word> with_attribute;
  inline static int described = 0;  // calls of comm_size

  static MpiLibrary Library() {
    comms.clear();
    with_attribute.clear();
    described = 0;
    MpiLibrary library;
    library.version = "Open MPI v0.0.0";
    library.abi = {false, 10, kNull, kNull, kNull, -4, 2, 1, 3};
    MpiFunctions& mpi = library.functions;
    mpi.comm_size = [](Word comm, int* size) {
      ++described;
      *size = comms.at(comm).ranks;
      return 0;
    };
    mpi.comm_remote_size = [](Word comm, int* size) { return *size = comms.at(comm).remote, 0; };
    mpi.comm_rank = [](Word comm, int* rank) { return *rank = comms.at(comm).rank, 0; };
    mpi.comm_test_inter = [](Word comm, int* flag) {
      return *flag = comms.at(comm).remote > 0 ? 1 : 0, 0;
    };
    mpi.comm_get_name = [](Word, char* name, int* length) {
      name[0] = 'x';
      return *length = 1, 0;
    };
    mpi.comm_group = [](Word comm, Word* group) { return *group = comm, 0; };
    mpi.group_translate_ranks = [](Word group, int count, const int* ranks, Word, int* others) {
      for (int i = 0; i < count; ++i) others[i] = ranks[i] + static_cast<int>(group);
      return 0;
    };
    mpi.group_free = [](Word*) { return 0; };
    mpi.comm_create_keyval = [](void*, void*, int* keyval, void*) { return *keyval = 7, 0; };
    mpi.comm_set_attr = [](Word comm, int, void*) { return with_attribute.insert(comm), 0; };
    mpi.topo_test = [](Word comm, int* status) { return *status = comms.at(comm).topology, 0; };
    mpi.cartdim_get = [](Word comm, int* count) { return *count = comms.at(comm).sources, 0; };
    mpi.graph_neighbors_count = [](Word comm, int, int* count) {
      return *count = comms.at(comm).sources, 0;
    };
    mpi.dist_graph_neighbors_count = [](Word comm, int* in, int* out, int*) {
      return *in = *out = comms.at(comm).sources, 0;
    };
    mpi.type_size = [](Word type, int* size) {
      if (type != kInt && type != kDouble) return 3;  // no type at all
      return *size = type == kInt ? 4 : 8, 0;
    };
    mpi.op_commutative = [](Word op, int* commutes) { return *commutes = op == kSum ? 1 : 0, 0; };
    mpi.initialized = [](int* flag) { return *flag = 1, 0; };
    mpi.finalized = [](int* flag) { return *flag = 0, 0; };
    return library;
  }
};

}  // namespace diapason::mpi_recorder
