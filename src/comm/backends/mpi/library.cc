#include "comm/backends/mpi/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <vector>

#include "base/text.h"
#include "comm/reduce.h"
#include "domain/collectives.h"

namespace diapason::comm {
namespace {

constexpr size_t kMostCopies = 512;

std::atomic<bool> g_leave_unfinished{false};

void FinalizeAtExit() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0 || g_leave_unfinished.load()) return;
  MPI_T_finalize();
  MPI_Finalize();
}

void SetDefault(const char* name, const char* value) { setenv(name, value, 0); }

template <DataType kType, ReduceOp kReduce>
void ReduceHalves(void* in, void* inout, int* count, MPI_Datatype* /*type*/) {
  Accumulate(kType, kReduce, inout, in, static_cast<size_t>(*count));
}

struct HalfType {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op sum = MPI_OP_NULL;
  MPI_Op prod = MPI_OP_NULL;
  MPI_Op min = MPI_OP_NULL;
  MPI_Op max = MPI_OP_NULL;
};

template <DataType kType>
const HalfType& Half() {
  static const HalfType half = [] {
    HalfType made;
    MPI_Type_contiguous(2, MPI_BYTE, &made.type);
    MPI_Type_commit(&made.type);
    MPI_Op_create(&ReduceHalves<kType, ReduceOp::kSum>, 1, &made.sum);
    MPI_Op_create(&ReduceHalves<kType, ReduceOp::kProd>, 1, &made.prod);
    MPI_Op_create(&ReduceHalves<kType, ReduceOp::kMin>, 1, &made.min);
    MPI_Op_create(&ReduceHalves<kType, ReduceOp::kMax>, 1, &made.max);
    return made;
  }();
  return half;
}

// One of Open MPI's control variables, through MPI's tool interface.
class ControlVariable {
 public:
  explicit ControlVariable(const std::string& name) {
    int index = 0;
    if (MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS) return;
    int count = 0;
    if (MPI_T_cvar_handle_alloc(index, nullptr, &handle_, &count) != MPI_SUCCESS) return;
    open_ = count == 1;
  }
  ~ControlVariable() {
    if (handle_ != MPI_T_CVAR_HANDLE_NULL) MPI_T_cvar_handle_free(&handle_);
  }
  ControlVariable(const ControlVariable&) = delete;
  ControlVariable& operator=(const ControlVariable&) = delete;

  bool open() const { return open_; }
  bool Write(int value) { return open_ && MPI_T_cvar_write(handle_, &value) == MPI_SUCCESS; }
  int Read() const {
    int value = 0;
    return open_ && MPI_T_cvar_read(handle_, &value) == MPI_SUCCESS ? value : 0;
  }

 private:
  MPI_T_cvar_handle handle_ = MPI_T_CVAR_HANDLE_NULL;
  bool open_ = false;
};

}  // namespace

Status FromMpi(int code) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  int kind = 0;
  MPI_Error_string(code, text, &length);
  MPI_Error_class(code, &kind);
  if (kind == MPI_ERR_UNSUPPORTED_OPERATION) return Unavailable(text);
  if (kind == MPI_ERR_TRUNCATE) {
    return Invalid(std::string(text) + " (the ranks do not agree on the size)");
  }
  return PeerLost(text);
}

std::string MpiVersion() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string whole(text);
  constexpr std::string_view kStart = "Open MPI v";
  if (!whole.starts_with(kStart)) return std::string(Trim(whole.substr(0, whole.find('\n'))));
  return whole.substr(kStart.size(), whole.find(',') - kStart.size());
}

void LeaveMpiUnfinished() { g_leave_unfinished.store(true); }

Status StartMpi(bool choose, const RankInfo& place) {
  int done = 0;
  MPI_Finalized(&done);
  if (done != 0)
    return Unavailable("this process has finalized MPI, which cannot be started again");
  MPI_Initialized(&done);
  if (done == 0) {
    // Open MPI's components look up its symbols globally; loaded as part of a module they are not
    // global.
    void* global = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    static_cast<void>(global);  // another MPI has another name, and may not need this
    if (choose) SetDefault("OMPI_MCA_coll_tuned_use_dynamic_rules", "1");
    const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    int64_t local_ranks = place.local_size;
    if (local != nullptr) ParseSigned(local, &local_ranks);
    // Ranks that share a core must yield to each other.
    if (local_ranks > sysconf(_SC_NPROCESSORS_ONLN)) {
      SetDefault("OMPI_MCA_mpi_yield_when_idle", "1");
    }
    // Groups are independent: two threads may call MPI concurrently, each with its own group.
    int provided = 0;
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    if (code != MPI_SUCCESS) return FromMpi(code).WithContext("MPI_Init_thread");
    std::atexit(FinalizeAtExit);
  }
  // Open MPI uses the level given here for all of MPI: it must be the level MPI runs with.
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  int provided = 0;
  MPI_T_init_thread(level, &provided);
  return {};
}

MpiWords::MpiWords()
    : types{MPI_FLOAT,
            MPI_DOUBLE,
            Half<DataType::kF16>().type,
            Half<DataType::kBf16>().type,
            MPI_INT8_T,
            MPI_UINT8_T,
            MPI_INT32_T,
            MPI_INT64_T} {
  for (size_t type = 0; type < 8; ++type) {
    HalfType ops{MPI_DATATYPE_NULL, MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
    if (static_cast<DataType>(type) == DataType::kF16) ops = Half<DataType::kF16>();
    if (static_cast<DataType>(type) == DataType::kBf16) ops = Half<DataType::kBf16>();
    // In the order of ReduceOp; an average is first computed as a sum.
    const MPI_Op row[5] = {ops.sum, ops.prod, ops.min, ops.max, ops.sum};
    std::copy(std::begin(row), std::end(row), reductions[type]);
  }
}

TunedCopies::~TunedCopies() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0 || g_leave_unfinished.load()) return;
  for (auto& [key, copy] : copies_) MPI_Comm_free(&copy);
}

Status TunedCopies::Knows(Collective collective, const Config& config) const {
  static const bool dynamic = ControlVariable("coll_tuned_use_dynamic_rules").Read() != 0;
  if (!dynamic) {
    return Unavailable(
        "Open MPI was started without its dynamic rules: set GroupOptions::choose, or start the "
        "job with OMPI_MCA_coll_tuned_use_dynamic_rules=1");
  }
  if (config.protocol != kKeep) return Unavailable("Open MPI has no protocols to choose from");
  if (config.channels != 0) return Unavailable("Open MPI has no channels to choose");
  const std::vector<int> algorithms = Algorithms(Library::kOpenMpi, collective);
  if (std::find(algorithms.begin(), algorithms.end(), config.algorithm) == algorithms.end()) {
    if (config.algorithm == kKeep) {
      return Unavailable("Open MPI takes a segment size only together with an algorithm");
    }
    return Invalid(Format("Open MPI has no {} algorithm number {}",
                          std::string(CollectiveName(collective)), config.algorithm));
  }
  int ranks = 0;
  MPI_Comm_size(original_, &ranks);
  if (ranks != 2 &&
      AlgorithmName(Library::kOpenMpi, collective, config.algorithm).starts_with("two_proc")) {
    return Unavailable("this algorithm of Open MPI is for two ranks");
  }
  if (config.segment_bytes < 0 || config.segment_bytes > INT_MAX) {
    return Invalid("a segment has from 0 to 2147483647 bytes");
  }
  return {};
}

Result<MPI_Comm> TunedCopies::For(Collective collective, const Config& config) {
  const Key key{collective, config.algorithm, config.segment_bytes};
  if (const auto found = copies_.find(key); found != copies_.end()) return found->second;
  if (copies_.size() >= kMostCopies) {
    // All ranks have made the same calls, so all free the same copies now.
    for (auto& [old, copy] : copies_) MPI_Comm_free(&copy);
    copies_.clear();
  }
  // "MPI_Bcast" is "bcast" there.
  const std::string function = ToLower(FactsOf(collective).mpi);
  const std::string name = "coll_tuned_" + function.substr(4) + "_algorithm";
  ControlVariable algorithm(name);
  ControlVariable segment(name + "_segmentsize");
  const int segment_before = segment.Read();
  if (config.segment_bytes > 0 && !segment.open()) {
    return Unavailable("this Open MPI has no segment size for " +
                       std::string(CollectiveName(collective)));
  }
  if (!algorithm.Write(config.algorithm) ||
      (config.segment_bytes > 0 && !segment.Write(static_cast<int>(config.segment_bytes)))) {
    return Unavailable("this Open MPI does not let " + name + " be set while it runs");
  }
  MPI_Comm copy = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(original_, &copy);
  algorithm.Write(0);  // restores the library's own choice for the next communicator
  if (config.segment_bytes > 0) segment.Write(segment_before);
  if (code != MPI_SUCCESS) return FromMpi(code);
  copies_[key] = copy;
  return copy;
}

}  // namespace diapason::comm
