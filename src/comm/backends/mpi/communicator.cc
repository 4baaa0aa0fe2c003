#include "comm/backends/mpi/communicator.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <thread>

#include "base/text.h"
#include "comm/check.h"
#include "comm/reduce.h"

namespace diapason::comm {
namespace {

using std::chrono::steady_clock;

constexpr int kPairTag = 77;

const void* OwnPart(const void* data, const Call& call, int rank) {
  return static_cast<const std::byte*>(data) +
         call.count * SizeOf(call.type) * static_cast<size_t>(rank);
}

// The buffers as MPI expects them; a result that MPI cannot write in place goes to `scratch`.
struct MpiBuffers {
  const void* in = nullptr;
  void* out = nullptr;
  std::vector<std::byte> scratch;
};

void Arrange(const Call& call, int rank, MpiBuffers* buffers) {
  buffers->in = call.in;
  buffers->out = call.out;
  switch (call.operation) {
    case Operation::kAllReduce:
      if (call.in == call.out) buffers->in = MPI_IN_PLACE;
      break;
    case Operation::kReduce:
      if (rank == call.peer && call.in == call.out) buffers->in = MPI_IN_PLACE;
      break;
    case Operation::kAllGather:
      if (call.in == OwnPart(call.out, call, rank)) buffers->in = MPI_IN_PLACE;
      break;
    case Operation::kBroadcast:
      // MPI has one buffer: on the root it must already hold the data.
      if (rank == call.peer && call.in != call.out) {
        std::memcpy(call.out, call.in, call.count * SizeOf(call.type));
      }
      break;
    case Operation::kReduceScatter:
      // MPI's "in place" differs: the whole input is in the output buffer.
      if (call.out == OwnPart(call.in, call, rank)) {
        buffers->scratch.resize(call.count * SizeOf(call.type));
        buffers->out = buffers->scratch.data();
      }
      break;
    default:
      break;
  }
}

// Postprocessing after MPI's call.
void Complete(const Call& call, int rank, int size, const MpiBuffers& buffers) {
  if (!buffers.scratch.empty())
    std::memcpy(call.out, buffers.scratch.data(), buffers.scratch.size());
  if (!Reduces(call.operation) || OutCount(call, rank, size) == 0) return;
  Finish(call.type, call.reduce, call.out, call.count, size);
}

class MpiPending : public PendingCall {
 public:
  MpiPending(const Call& call, int rank, int size) : call_(call), rank_(rank), size_(size) {}

  Status Wait(Deadline deadline) override {
    for (uint64_t turn = 0; !done_; ++turn) {
      Test();
      if (done_) break;
      if (steady_clock::now() >= deadline) return TimedOut("the call has not finished in time");
      if (turn > 1000) sched_yield();
    }
    return status_;
  }

  bool Done() override {
    Test();
    return done_;
  }

  MPI_Request request = MPI_REQUEST_NULL;
  MpiBuffers buffers;
  std::vector<int> counts;

 private:
  void Test() {
    if (done_) return;
    int flag = 0;
    const int code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    status_ = FromMpi(code);
    done_ = flag != 0 || code != MPI_SUCCESS;
    if (done_ && status_.ok()) Complete(call_, rank_, size_, buffers);
  }

  const Call call_;
  const int rank_;
  const int size_;
  bool done_ = false;
  Status status_;
};

class FinishedPending : public PendingCall {
 public:
  Status Wait(Deadline /*deadline*/) override { return {}; }
  bool Done() override { return true; }
};

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm communicator, std::function<void(const std::string&)> log)
    : communicator_(communicator), log_(std::move(log)), copies_(communicator) {
  MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
  MPI_Comm local = MPI_COMM_NULL;
  if (MPI_Comm_split_type(communicator_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local) ==
      MPI_SUCCESS) {
    MPI_Comm_rank(local, &local_rank_);
    MPI_Comm_free(&local);
  }
  const int first = local_rank_ == 0 ? 1 : 0;
  MPI_Allreduce(&first, &nodes_, 1, MPI_INT, MPI_SUM, communicator_);
}

MpiCommunicator::~MpiCommunicator() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  // Freeing is collective: not after a failure, when other ranks may not call it.
  if (finalized == 0 && !abandoned_) MPI_Comm_free(&communicator_);
}

void MpiCommunicator::Interrupt(const std::string& reason) noexcept {
  log_(reason + ". Open MPI cannot take a call back: the job ends here");
  MPI_Abort(MPI_COMM_WORLD, 1);
  _exit(1);
}

void MpiCommunicator::Abandon() noexcept {
  abandoned_ = true;
  LeaveMpiUnfinished();
}

Status MpiCommunicator::CanRun(const Call& call) const {
  if (call.count * static_cast<size_t>(size_) > INT_MAX) {
    return Unavailable("MPI takes at most 2147483647 elements, counted over all ranks");
  }
  if (call.config.IsDefault()) return {};
  const std::optional<Collective> collective = CollectiveOf(call.operation);
  if (!collective.has_value()) {
    return Unavailable(Format("Open MPI offers no choice for {}", OperationName(call.operation)));
  }
  return copies_.Knows(*collective, call.config);
}

Status MpiCommunicator::Run(const Call& call, Deadline /*deadline*/) {
  if (call.config.IsDefault()) return RunBlocking(call, communicator_);
  const std::optional<Collective> collective = CollectiveOf(call.operation);
  if (!collective.has_value()) return Internal("not a tuned collective");
  ASSIGN_OR_RETURN(const MPI_Comm copy, copies_.For(*collective, call.config));
  return RunBlocking(call, copy);
}

Status MpiCommunicator::RunPlain(const void* in, void* out, size_t count, DataType type,
                                 ReduceOp reduce, std::chrono::milliseconds /*limit*/) {
  const int code = MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, static_cast<int>(count),
                                 words_.Type(type), words_.Reduction(type, reduce), communicator_);
  if (code != MPI_SUCCESS) return FromMpi(code);
  if (reduce == ReduceOp::kAvg) Finish(type, reduce, out, count, size_);
  return {};
}

Status MpiCommunicator::RunBlocking(const Call& call, MPI_Comm communicator) {
  const int count = static_cast<int>(call.count);
  const MPI_Datatype type = words_.Type(call.type);
  MpiBuffers buffers;
  Arrange(call, rank_, &buffers);
  int code = MPI_SUCCESS;
  switch (call.operation) {
    case Operation::kAllReduce:
      code = MPI_Allreduce(buffers.in, buffers.out, count, type,
                           words_.Reduction(call.type, call.reduce), communicator);
      break;
    case Operation::kBroadcast:
      code = MPI_Bcast(buffers.out, count, type, call.peer, communicator);
      break;
    case Operation::kReduce:
      code = MPI_Reduce(buffers.in, buffers.out, count, type,
                        words_.Reduction(call.type, call.reduce), call.peer, communicator);
      break;
    case Operation::kAllGather:
      code = MPI_Allgather(buffers.in, count, type, buffers.out, count, type, communicator);
      break;
    case Operation::kReduceScatter:
      counts_.assign(static_cast<size_t>(size_), count);
      code = MPI_Reduce_scatter(buffers.in, buffers.out, counts_.data(), type,
                                words_.Reduction(call.type, call.reduce), communicator);
      break;
    case Operation::kAllToAll:
      code = MPI_Alltoall(buffers.in, count, type, buffers.out, count, type, communicator);
      break;
    case Operation::kSend:
      code = MPI_Send(call.in, count, type, call.peer, kPairTag, communicator);
      break;
    case Operation::kRecv:
      code = MPI_Recv(call.out, count, type, call.peer, kPairTag, communicator, MPI_STATUS_IGNORE);
      break;
    case Operation::kBarrier:
      code = MPI_Barrier(communicator);
      break;
  }
  if (code != MPI_SUCCESS) return FromMpi(code);
  Complete(call, rank_, size_, buffers);
  return {};
}

Result<std::unique_ptr<PendingCall>> MpiCommunicator::Start(const Call& call, Deadline deadline) {
  if (!call.config.IsDefault()) {
    // coll_tuned decides on blocking calls only: the call is done when this returns.
    RETURN_IF_ERROR(Run(call, deadline));
    return std::unique_ptr<PendingCall>(std::make_unique<FinishedPending>());
  }
  auto pending = std::make_unique<MpiPending>(call, rank_, size_);
  MpiBuffers& buffers = pending->buffers;
  MPI_Request* request = &pending->request;
  Arrange(call, rank_, &buffers);
  const MPI_Datatype type = words_.Type(call.type);
  const MPI_Op reduction = words_.Reduction(call.type, call.reduce);
  const int count = static_cast<int>(call.count);
  int code = MPI_SUCCESS;
  switch (call.operation) {
    case Operation::kAllReduce:
      code =
          MPI_Iallreduce(buffers.in, buffers.out, count, type, reduction, communicator_, request);
      break;
    case Operation::kBroadcast:
      code = MPI_Ibcast(buffers.out, count, type, call.peer, communicator_, request);
      break;
    case Operation::kReduce:
      code = MPI_Ireduce(buffers.in, buffers.out, count, type, reduction, call.peer, communicator_,
                         request);
      break;
    case Operation::kAllGather:
      code =
          MPI_Iallgather(buffers.in, count, type, buffers.out, count, type, communicator_, request);
      break;
    case Operation::kReduceScatter:
      pending->counts.assign(static_cast<size_t>(size_), count);
      code = MPI_Ireduce_scatter(buffers.in, buffers.out, pending->counts.data(), type, reduction,
                                 communicator_, request);
      break;
    case Operation::kAllToAll:
      code =
          MPI_Ialltoall(buffers.in, count, type, buffers.out, count, type, communicator_, request);
      break;
    case Operation::kSend:
      code = MPI_Isend(call.in, count, type, call.peer, kPairTag, communicator_, request);
      break;
    case Operation::kRecv:
      code = MPI_Irecv(call.out, count, type, call.peer, kPairTag, communicator_, request);
      break;
    case Operation::kBarrier:
      code = MPI_Ibarrier(communicator_, request);
      break;
  }
  if (code != MPI_SUCCESS) return FromMpi(code);
  return std::unique_ptr<PendingCall>(std::move(pending));
}

Result<std::unique_ptr<Communicator>> MpiCommunicator::Split(const std::vector<int>& members,
                                                             const std::string& /*name*/,
                                                             Deadline /*deadline*/) {
  const auto own = std::find(members.begin(), members.end(), rank_);
  const bool belongs = own != members.end();
  const int color = belongs ? members.front() : MPI_UNDEFINED;
  MPI_Comm part = MPI_COMM_NULL;
  const int code = MPI_Comm_split(communicator_, color,
                                  belongs ? static_cast<int>(own - members.begin()) : 0, &part);
  if (code != MPI_SUCCESS) return FromMpi(code);
  if (!belongs) return std::unique_ptr<Communicator>();
  return std::unique_ptr<Communicator>(std::make_unique<MpiCommunicator>(part, log_));
}

}  // namespace diapason::comm
