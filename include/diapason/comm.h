// comm.h: collectives over any backend that works on this machine.
//
//   auto group = diapason::Group::Create();            // the first of NCCL, RCCL, Gloo, Open MPI
//   if (!group.ok()) { puts(group.status().message().c_str()); return 1; }
//   diapason::Status status = group.value()->AllReduce(in, out, count, diapason::DataType::kF32);
//
// Start the program with `diapason launch -n 4 -- ./program`, mpirun, srun or torchrun: the rank,
// the number of ranks and the address are read from the environment variables that these set. Link
// with libdiapason-comm.so.
//
// No function throws, every wait has a limit, and nothing is written to standard output.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diapason/config.h"
#include "diapason/status.h"

#define DIAPASON_API __attribute__((visibility("default")))

namespace diapason {

enum class DataType : uint8_t { kF32, kF64, kF16, kBf16, kI8, kU8, kI32, kI64 };
enum class ReduceOp : uint8_t { kSum, kProd, kMin, kMax, kAvg };
enum class Operation : uint8_t {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSend,
  kRecv,
  kBarrier,
};
inline constexpr int kOperationCount = 9;

// Where a buffer lies. kAuto asks the GPU driver, if there is one.
enum class Memory : uint8_t { kAuto, kHost, kDevice };

inline size_t SizeOf(DataType type) {
  constexpr uint8_t kSizes[] = {4, 8, 2, 2, 1, 1, 4, 8};
  return kSizes[static_cast<size_t>(type)];
}
DIAPASON_API const char* DataTypeName(DataType type);         // "f32"
DIAPASON_API const char* ReduceOpName(ReduceOp reduce);       // "sum"
DIAPASON_API const char* OperationName(Operation operation);  // "all_reduce"
DIAPASON_API Result<DataType> ParseDataType(const std::string& name);
DIAPASON_API Result<ReduceOp> ParseReduceOp(const std::string& name);
DIAPASON_API Result<Operation> ParseOperation(const std::string& name);

// One tensor of a coalesced all_reduce.
struct Tensor {
  const void* in = nullptr;
  void* out = nullptr;
  size_t count = 0;
};

// One operation with all its arguments. The functions below build one; Group::Run runs it and
// Group::Start starts it. Every rank of the group must make the same calls in the same order, with
// the same counts, types and configurations.
struct Call {
  Operation operation = Operation::kBarrier;
  const void* in = nullptr;
  void* out = nullptr;
  size_t count = 0;  // elements; each function below says which buffer it counts
  DataType type = DataType::kF32;
  ReduceOp reduce = ReduceOp::kSum;
  int peer = -1;  // the root of broadcast and reduce, the other side of send and recv
  // Several tensors of one type in one all_reduce; `in`, `out` and `count` are then unused. The
  // array must live until the call is done.
  std::span<const Tensor> tensors = {};
  // The type in which the data travels: f32 as bf16 or f16, all_reduce only. Halves the bytes sent;
  // sums are rounded to the narrower type at every step.
  std::optional<DataType> wire = std::nullopt;
  // The configuration to run with. Needs GroupOptions::choose; for programs that measure.
  Config config = {};
  // A cudaStream_t or hipStream_t to run on; nullptr is the group's own. The operation begins after
  // the work that is already in the stream. Backends without streams first wait for that work.
  void* stream = nullptr;
  Memory memory = Memory::kAuto;
};

// Combines `count` elements of every rank; every rank gets the result. in == out is allowed. The
// average of integers is truncated towards zero.
inline Call AllReduceCall(const void* in, void* out, size_t count, DataType type,
                          ReduceOp reduce = ReduceOp::kSum) {
  return {Operation::kAllReduce, in, out, count, type, reduce};
}
inline Call CoalescedAllReduceCall(std::span<const Tensor> tensors, DataType type,
                                   ReduceOp reduce = ReduceOp::kSum) {
  return {Operation::kAllReduce, nullptr, nullptr, 0, type, reduce, -1, tensors};
}
// Sends the root's `count` elements to every rank. `in` is read on the root only; in == out is
// allowed.
inline Call BroadcastCall(const void* in, void* out, size_t count, DataType type, int root) {
  return {Operation::kBroadcast, in, out, count, type, ReduceOp::kSum, root};
}
// As AllReduceCall, but only the root gets the result; `out` is written there only.
inline Call ReduceCall(const void* in, void* out, size_t count, DataType type, ReduceOp reduce,
                       int root) {
  return {Operation::kReduce, in, out, count, type, reduce, root};
}
// Every rank contributes `count` elements; `out` holds count * size() elements in rank order. In
// place: in == out + rank() * count.
inline Call AllGatherCall(const void* in, void* out, size_t count, DataType type) {
  return {Operation::kAllGather, in, out, count, type};
}
// Every rank contributes count * size() elements; rank r gets the combined r-th block of `count`
// elements. In place: out == in + rank() * count. Otherwise `in` is unchanged.
inline Call ReduceScatterCall(const void* in, void* out, size_t count, DataType type,
                              ReduceOp reduce = ReduceOp::kSum) {
  return {Operation::kReduceScatter, in, out, count, type, reduce};
}
// Block r of `in` goes to rank r, block r of `out` comes from rank r: count * size() elements each
// way. In place is not supported.
inline Call AllToAllCall(const void* in, void* out, size_t count, DataType type) {
  return {Operation::kAllToAll, in, out, count, type};
}
inline Call SendCall(const void* in, size_t count, DataType type, int to) {
  return {Operation::kSend, in, nullptr, count, type, ReduceOp::kSum, to};
}
inline Call RecvCall(void* out, size_t count, DataType type, int from) {
  return {Operation::kRecv, nullptr, out, count, type, ReduceOp::kSum, from};
}
inline Call BarrierCall() { return {}; }

// Totals of a group so far. Bandwidths are in bytes per second as nccl-tests defines them: algbw is
// bytes over time; busbw is the part of it that one link carries, comparable with the link's peak.
struct Statistics {
  uint64_t operations = 0;
  uint64_t bytes = 0;
  double seconds = 0;
  double algbw = 0;
  double busbw = 0;
  double link_peak = 0;   // bytes per second; 0: not known
  double peak_share = 0;  // busbw / link_peak; 0: not known
  uint64_t slow_calls = 0;
  // Calls without a known duration: captured into a GPU graph, or run by a library that does not
  // report their end. They count towards no bandwidth and are never reported as slow.
  uint64_t untimed = 0;
  std::string slowest;  // "all_reduce number 12, 4MiB f32, 31.2 ms"; empty before the first call
  double slowest_seconds = 0;
  bool simulated = false;  // every figure comes from the simulated cluster
};

struct GroupOptions {
  // auto, nccl, rccl, gloo, mpi or sim. auto takes the first of nccl, rccl, gloo, mpi that works on
  // every rank. Naming a backend that does not work here is an error.
  std::string backend = "auto";

  // Fields that are not set are read from the launcher's variables: RANK, WORLD_SIZE, LOCAL_RANK,
  // MASTER_ADDR, MASTER_PORT, or those of Open MPI or Slurm. The defaults are one rank, localhost
  // and port 29500.
  int rank = -1;
  int size = -1;
  int local_rank = -1;
  std::string master_addr = {};
  int master_port = 0;

  // The limit of every wait, including creation; 0: DIAPASON_TIMEOUT, 600 s by default.
  std::chrono::milliseconds timeout{0};
  // Calls that take longer are logged; 0: DIAPASON_SLOW_CALL, 10 ms by default; negative: never.
  std::chrono::milliseconds slow_call{0};
  // Allows calls to name configurations, for programs that measure. NCCL then loads the diapason
  // tuner plugin, and Open MPI reads its dynamic rules, which adds a few nanoseconds to each call.
  bool choose = false;
  // A policy (docs/formats/policy.md), such as `diapason tune` writes, for calls that name no
  // configuration. It must be the same on every rank, or creating the group fails. Where the
  // library refuses a row, the library decides. NCCL and RCCL jobs that do not use this header get
  // their policy through the plugin instead.
  std::string policy = {};
  // The peak of the slowest link in bytes per second, for the statistics; 0: the backend's figure.
  double link_peak = 0;
  // The simulated cluster: a shipped name or a TOML file; "": DIAPASON_CLUSTER.
  std::string cluster = {};
  uint64_t seed = 1;
  // Where log lines go; by default to standard error.
  std::function<void(const std::string&)> log = {};
};

namespace comm {
class GroupState;
class WorkState;
}  // namespace comm

// A started operation. Its buffers must live until it is done. The destructor waits for it.
class DIAPASON_API Work {
 public:
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  // Waits until the operation is done. A limit of zero means the group's own. Reaching the limit
  // breaks the group, because the state of the other ranks is then unknown.
  Status Wait(std::chrono::milliseconds limit = std::chrono::milliseconds{0});
  // Whether Wait would return at once. Never blocks.
  bool Done();

 private:
  friend class Group;
  explicit Work(std::unique_ptr<comm::WorkState> state);
  std::unique_ptr<comm::WorkState> state_;
};

// The ranks that communicate. One thread at a time may use a group; different groups are
// independent. (A program that initialises MPI itself and uses two groups from two threads must
// request MPI_THREAD_MULTIPLE.)
//
// When a wait reaches its limit or another rank dies, every waiting rank gets an error that names
// the operation, its number, its size and, where known, the missing ranks. The group is then
// broken: every later call returns the same error. Destroy it; a new one can be created. (Open MPI
// ends the whole job instead, after the message has been logged.)
class DIAPASON_API Group {
 public:
  // Every rank calls this. It returns when all ranks have joined and a test all_reduce has
  // succeeded.
  static Result<std::unique_ptr<Group>> Create(const GroupOptions& options = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const;
  int size() const;
  int local_rank() const;
  int nodes() const;
  // "gloo"
  const std::string& backend() const;
  // The backend that was chosen, and why the others were not: "gloo 0.5.0, tcp on lo; nccl: no GPU
  // driver; ...".
  const std::string& description() const;
  bool simulated() const;

  // Runs a call to completion: the result is in `out` on return.
  Status Run(const Call& call);
  // Starts a call; Work::Wait returns its errors. On a stream that is being captured into a GPU
  // graph the call becomes part of the graph, if the backend supports that, and the Work is done at
  // once.
  Work Start(const Call& call);

  Status AllReduce(const void* in, void* out, size_t count, DataType type,
                   ReduceOp reduce = ReduceOp::kSum);
  Status AllReduce(std::span<const Tensor> tensors, DataType type,
                   ReduceOp reduce = ReduceOp::kSum) {
    return Run(CoalescedAllReduceCall(tensors, type, reduce));
  }
  Status Broadcast(const void* in, void* out, size_t count, DataType type, int root) {
    return Run(BroadcastCall(in, out, count, type, root));
  }
  Status Reduce(const void* in, void* out, size_t count, DataType type, ReduceOp reduce, int root) {
    return Run(ReduceCall(in, out, count, type, reduce, root));
  }
  Status AllGather(const void* in, void* out, size_t count, DataType type) {
    return Run(AllGatherCall(in, out, count, type));
  }
  Status ReduceScatter(const void* in, void* out, size_t count, DataType type,
                       ReduceOp reduce = ReduceOp::kSum) {
    return Run(ReduceScatterCall(in, out, count, type, reduce));
  }
  Status AllToAll(const void* in, void* out, size_t count, DataType type) {
    return Run(AllToAllCall(in, out, count, type));
  }
  Status Send(const void* in, size_t count, DataType type, int to) {
    return Run(SendCall(in, count, type, to));
  }
  Status Recv(void* out, size_t count, DataType type, int from) {
    return Run(RecvCall(out, count, type, from));
  }
  Status Barrier() { return Run(BarrierCall()); }

  // Every rank calls this; ranks with the same color form a group, ordered by key, then by rank. A
  // rank with a negative color joins none and gets a null pointer.
  Result<std::unique_ptr<Group>> Split(int color, int key);

  Statistics statistics() const;
  void ResetStatistics();

  // Seconds on the group's clock since an arbitrary fixed point: simulated time in the simulated
  // cluster, real time elsewhere.
  double Now() const;
  // Simulated cluster only: this rank computes for `seconds`, as if it had the GPU to itself.
  // Operations in flight slow it down by the channels they occupy.
  Status SimulateCompute(double seconds);

 private:
  explicit Group(std::shared_ptr<comm::GroupState> state);
  std::shared_ptr<comm::GroupState> state_;
};

// The state of one backend on this machine.
struct BackendInfo {
  std::string name;  // "nccl"
  bool usable = false;
  std::string version;  // "2.28.9"; empty where there is none
  std::string devices;  // "1 x NVIDIA H200", "tcp on lo"
  std::string reason;   // why it is not usable; empty where it is
};
// In order of preference; the simulated cluster is last and is never chosen by `auto`.
DIAPASON_API std::vector<BackendInfo> Backends();

}  // namespace diapason
