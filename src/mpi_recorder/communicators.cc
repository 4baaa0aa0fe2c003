#include "mpi_recorder/communicators.h"

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "base/mutex_lock.h"
#include "base/random.h"

namespace diapason::mpi_recorder {
namespace {

// Beyond this, only some members of a communicator name it: translating ranks takes the product of
// two sizes.
constexpr int kMostMembers = 1024;
constexpr int kSomeMembers = 16;
constexpr int kLongestCommName = 1024;

CommTable* table_of_process = nullptr;  // for the function that MPI calls

int Copy(Word, int, void*, void*, void*, int* flag) {
  *flag = 0;  // a duplicate is a communicator of its own
  return 0;
}

int Delete(Word comm, int, void*, void*) {
  if (table_of_process != nullptr) table_of_process->Remove(comm);
  return 0;
}

uint32_t PositiveOf(const char* text) {
  const long value = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return value > 0 && value < (1L << 30) ? static_cast<uint32_t>(value) : 0;
}

}  // namespace

uint32_t NodesOfJob(const std::function<const char*(const char*)>& get) {
  for (const auto& [size, local] : {std::pair("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
                                    std::pair("PMI_SIZE", "MPI_LOCALNRANKS")}) {
    const uint32_t all = PositiveOf(get(size));
    const uint32_t here = PositiveOf(get(local));
    if (all > 0 && here > 0 && all % here == 0) return all / here;
  }
  return PositiveOf(get("SLURM_STEP_NUM_NODES"));
}

CommTable::CommTable(const MpiLibrary* library, Describe describe)
    : library_(*library),
      describe_(std::move(describe)),
      nodes_(NodesOfJob([](const char* name) { return std::getenv(name); })) {
  table_of_process = this;
  if (library_.functions.comm_create_keyval(reinterpret_cast<void*>(&Copy),
                                            reinterpret_cast<void*>(&Delete), &keyval_,
                                            nullptr) != 0) {
    keyval_ = -1;
  }
}

uint32_t CommTable::Sources(Word handle, int rank) const {
  const MpiFunctions& mpi = library_.functions;
  int topology = 0;
  if (mpi.topo_test(handle, &topology) != 0) return 0;
  int count = 0;
  if (topology == library_.abi.cartesian) {
    if (mpi.cartdim_get(handle, &count) != 0) return 0;
    count *= 2;
  } else if (topology == library_.abi.graph) {
    if (mpi.graph_neighbors_count(handle, rank, &count) != 0) return 0;
  } else if (topology == library_.abi.dist_graph) {
    int out = 0;
    int weighted = 0;
    if (mpi.dist_graph_neighbors_count(handle, &count, &out, &weighted) != 0) return 0;
  }
  return static_cast<uint32_t>(std::max(count, 0));
}

// A hash of the members' ranks in MPI_COMM_WORLD. Without a world (sessions of MPI-4) the size has
// to do; communicators are then told apart by the order of their first use.
uint64_t CommTable::MembersId(Word handle, int ranks) const {
  const MpiFunctions& mpi = library_.functions;
  uint64_t id = MixBits(static_cast<uint64_t>(ranks));
  int initialized = 0;
  int finalized = 1;
  if (mpi.initialized(&initialized) != 0 || mpi.finalized(&finalized) != 0 || initialized == 0 ||
      finalized != 0) {
    return id;
  }
  Word group = 0;
  Word world = 0;
  if (mpi.comm_group(handle, &group) != 0) return id;
  if (mpi.comm_group(library_.abi.comm_world, &world) == 0) {
    std::vector<int> members;
    const int step = ranks <= kMostMembers ? 1 : ranks / kSomeMembers;
    for (int rank = 0; rank < ranks; rank += step) members.push_back(rank);
    std::vector<int> translated(members.size());
    if (mpi.group_translate_ranks(group, static_cast<int>(members.size()), members.data(), world,
                                  translated.data()) == 0) {
      for (const int member : translated) id = MixBits(id ^ static_cast<uint32_t>(member));
    }
    mpi.group_free(&world);
  }
  mpi.group_free(&group);
  return id;
}

void CommTable::Learn(Word handle, Comm* comm, mpi_record::CommBlock* block,
                      std::string* name) const {
  const MpiFunctions& mpi = library_.functions;
  int ranks = 0;
  int rank = -1;
  int inter = 0;
  int remote = 0;
  mpi.comm_size(handle, &ranks);
  mpi.comm_rank(handle, &rank);
  mpi.comm_test_inter(handle, &inter);
  if (inter != 0) mpi.comm_remote_size(handle, &remote);
  comm->rank = rank;
  comm->inter = inter != 0;
  comm->ranks = static_cast<uint32_t>(std::max(ranks, 0));
  comm->others = static_cast<uint32_t>(std::max(inter != 0 ? remote : ranks, 0));
  comm->sources = inter != 0 ? 0 : Sources(handle, rank);
  comm->id = MembersId(handle, ranks);
  comm->created_ns = WallTimeNs();
  char text[kLongestCommName] = "";
  int length = 0;
  if (mpi.comm_get_name(handle, text, &length) == 0 && length > 0) {
    name->assign(text, static_cast<size_t>(std::min(length, kLongestCommName - 1)));
  }
  block->ranks = comm->ranks;
  block->rank = rank;
  block->remote_ranks = static_cast<uint32_t>(std::max(remote, 0));
  block->nodes = nodes_ == 1 || ranks == 1 ? 1 : 0;
  block->flags =
      (inter != 0 ? mpi_record::kInter : 0u) | (comm->sources > 0 ? mpi_record::kTopology : 0u);
}

// The table is not locked while MPI is called: MPI may hold a lock of its own when it calls Delete.
Comm* CommTable::Add(Word handle) {
  if (handle == library_.abi.comm_null || handle == kEmpty || handle == kRemoved) return nullptr;
  Comm learned;
  mpi_record::CommBlock block;
  std::string name;
  Learn(handle, &learned, &block, &name);
  Comm* comm = nullptr;
  {
    const MutexLock lock(&mutex_);
    Entry* place = nullptr;
    for (size_t i = Slot(handle), seen = 0; seen < kMostProbes; i = (i + 1) % kSlots, ++seen) {
      const Word key = slots_[i].key.load(std::memory_order_relaxed);
      if (key == handle) return slots_[i].comm.load(std::memory_order_relaxed);  // another thread's
      if (place == nullptr && (key == kEmpty || key == kRemoved)) place = &slots_[i];
      if (key == kEmpty) break;
    }
    if (place == nullptr) return nullptr;
    comm = Insert(learned, place, handle, &block, name);
  }
  // A communicator whose end is not told keeps its entry.
  if (keyval_ != -1) library_.functions.comm_set_attr(handle, keyval_, nullptr);
  return comm;
}

Comm* CommTable::Insert(const Comm& learned, Entry* place, Word handle,
                        mpi_record::CommBlock* block, const std::string& name) {
  if (free_.empty()) {
    all_.push_back(std::make_unique<Comm>());
    free_.push_back(all_.back().get());
  }
  Comm* comm = free_.back();
  free_.pop_back();
  comm->number = ++numbers_;
  comm->rank = learned.rank;
  comm->inter = learned.inter;
  comm->ranks = learned.ranks;
  comm->others = learned.others;
  comm->sources = learned.sources;
  comm->id = learned.id;
  comm->created_ns = learned.created_ns;
  comm->calls.store(0, std::memory_order_relaxed);
  block->number = comm->number;
  block->id = comm->id;
  block->created_ns = comm->created_ns;
  describe_(*block, name);
  place->comm.store(comm, std::memory_order_relaxed);
  place->key.store(handle, std::memory_order_release);
  return comm;
}

void CommTable::Remove(Word handle) {
  handle = library_.Handle(handle);
  const MutexLock lock(&mutex_);
  for (size_t i = Slot(handle), seen = 0; seen < kMostProbes; i = (i + 1) % kSlots, ++seen) {
    const Word key = slots_[i].key.load(std::memory_order_relaxed);
    if (key == kEmpty) return;
    if (key != handle) continue;
    slots_[i].key.store(kRemoved, std::memory_order_release);
    Comm* comm = slots_[i].comm.load(std::memory_order_relaxed);
    mpi_record::CommBlock block;
    block.number = comm->number;
    block.id = comm->id;
    block.created_ns = comm->created_ns;
    block.ended_ns = WallTimeNs();
    describe_(block, "");
    free_.push_back(comm);
    return;
  }
}

}  // namespace diapason::mpi_recorder
