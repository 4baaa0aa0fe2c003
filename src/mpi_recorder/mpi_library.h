#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The MPI library of the process that the recorder was preloaded into: found by its symbols, never
// linked, since the recorder is loaded into every process of a job, MPI program or not.
namespace diapason::mpi_recorder {

// An argument or a handle of MPI. All arguments of collectives are integers, pointers or handles,
// each of which takes one register or one 8-byte place on the stack under the calling conventions
// of Linux on x86-64 and AArch64: passed on as a word, nothing of them is lost. Open MPI's handles
// are pointers, those of MPICH and of the libraries with its ABI (Intel MPI, MVAPICH, Cray MPICH)
// are ints.
using Word = uintptr_t;

inline int IntOf(Word word) { return static_cast<int>(word); }

// The address of a function of the MPI library by its name; null: it has none. Looks behind the
// recorder, so that other tools that were preloaded keep their place.
void* FindSymbol(const char* name);

// The functions that the recorder calls itself: those with the prefix PMPI_, which no tool sees.
struct MpiFunctions {
  int (*comm_size)(Word comm, int* size) = nullptr;
  int (*comm_remote_size)(Word comm, int* size) = nullptr;
  int (*comm_rank)(Word comm, int* rank) = nullptr;
  int (*comm_test_inter)(Word comm, int* flag) = nullptr;
  int (*comm_get_name)(Word comm, char* name, int* length) = nullptr;
  int (*comm_group)(Word comm, Word* group) = nullptr;
  int (*group_translate_ranks)(Word group, int count, const int* ranks, Word other,
                               int* others) = nullptr;
  int (*group_free)(Word* group) = nullptr;
  int (*comm_create_keyval)(void* copy, void* remove, int* keyval, void* extra) = nullptr;
  int (*comm_set_attr)(Word comm, int keyval, void* value) = nullptr;
  int (*topo_test)(Word comm, int* status) = nullptr;
  int (*cartdim_get)(Word comm, int* dimensions) = nullptr;
  int (*graph_neighbors_count)(Word comm, int rank, int* count) = nullptr;
  int (*dist_graph_neighbors_count)(Word comm, int* in, int* out, int* weighted) = nullptr;
  int (*type_size)(Word type, int* size) = nullptr;
  int (*op_commutative)(Word op, int* commutes) = nullptr;
  int (*initialized)(int* flag) = nullptr;
  int (*finalized)(int* flag) = nullptr;
  // Null where handles are alike in C and Fortran.
  Word (*comm_f2c)(int comm) = nullptr;
  Word (*type_f2c)(int type) = nullptr;
  Word (*op_f2c)(int op) = nullptr;
};

// How an implementation represents what the standard leaves to it.
struct MpiAbi {
  bool int_handles = false;
  Word comm_world = 0;
  Word comm_null = 0;
  Word type_null = 0;
  Word op_null = 0;
  int root = 0;  // MPI_ROOT
  int graph = 0;
  int cartesian = 0;
  int dist_graph = 0;
};

struct MpiLibrary {
  std::string version;  // the first line of MPI_Get_library_version
  MpiAbi abi;
  MpiFunctions functions;

  // A handle without the bits that an int in a word may have beside it.
  Word Handle(Word word) const { return abi.int_handles ? static_cast<uint32_t>(word) : word; }
  Word CommOfFortran(int comm) const { return OfFortran(functions.comm_f2c, comm); }
  Word TypeOfFortran(int type) const { return OfFortran(functions.type_f2c, type); }
  Word OpOfFortran(int op) const { return OfFortran(functions.op_f2c, op); }

 private:
  static Word OfFortran(Word (*convert)(int), int handle) {
    return convert != nullptr ? convert(handle) : static_cast<uint32_t>(handle);
  }
};

enum class MpiFamily { kOpenMpi, kMpich, kUnknown };
// By the text of MPI_Get_library_version.
MpiFamily FamilyOf(std::string_view version);

// The MPI library of this process. None: it has none whose handles are known; `why` is then a
// sentence.
std::optional<MpiLibrary> FindMpiLibrary(std::string* why);

}  // namespace diapason::mpi_recorder
