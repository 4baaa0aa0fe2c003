#include "comm/backends/nccl/communicator.h"

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "comm/backends/nccl/pending.h"
#include "comm/backends/nccl/types.h"
#include "domain/collectives.h"
#include "domain/decision.h"

namespace diapason::comm::nccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long the end of a communicator waits for operations that the caller did not wait for.
constexpr milliseconds kDrainLimit{5000};

std::string NameOf(const NcclApi& api, const Config& config) {
  return ConfigText(api.library, diapason::Collective::kAllReduce, config);
}

}  // namespace

Status CommShared::Break(const Status& why, bool wait) {
  Status first = connection->Break(why, wait);
  workspace->gate()->Shut();
  return first;
}

Status CommShared::Flush(Deadline deadline) {
  if (messages.empty()) return Status();
  const Connection::Inside inside(connection.get());
  Status status = messages.Begin(connection.get(), workspace->runtime(), deadline);
  if (!status.ok()) return Break(status);
  return Status();
}

Result<std::unique_ptr<Communicator>> NcclCommunicator::Make(const Parts& parts,
                                                             Membership membership,
                                                             Deadline deadline) {
  const gpu::Bound bound(parts.runtime, parts.device);
  if (!bound.status().ok()) return bound.status();
  ASSIGN_OR_RETURN(std::shared_ptr<Workspace> workspace,
                   Workspace::Make(parts.runtime, parts.device));
  Result<std::unique_ptr<Connection>> connection =
      Connection::Open(parts.api, parts.runtime, parts.device, std::move(membership), deadline);
  if (!connection.ok()) {
    workspace->FreeAll();
    return connection.status();
  }
  auto shared = std::make_shared<CommShared>();
  shared->workspace = std::move(workspace);
  shared->connection = std::move(connection).value();
  std::unique_ptr<NcclCommunicator> communicator(new NcclCommunicator(parts, std::move(shared)));
  // Only now: the library loads the plugin with its first communicator.
  communicator->pin_ = PluginPin::Find(*parts.api);
  return std::unique_ptr<Communicator>(std::move(communicator));
}

NcclCommunicator::~NcclCommunicator() {
  Workspace& workspace = *shared_->workspace;
  const gpu::Bound bound(parts_.runtime, parts_.device);
  shared_->messages.Drop();
  // The library waits without a limit for operations in flight, so there must be none.
  const auto until = steady_clock::now() + kDrainLimit;
  while (shared_->connection->broken().ok() && !workspace.Idle()) {
    Status status = shared_->connection->Look();
    if (status.ok() && steady_clock::now() >= until) {
      status = TimedOut("operations were under way when the group was destroyed");
    }
    if (!status.ok()) static_cast<void>(shared_->Break(status));
    std::this_thread::sleep_for(milliseconds(1));
  }
  const bool gone = shared_->connection->Close();
  static_cast<void>(shared_->Break(Invalid("the group has been destroyed"), false));
  if (gone) workspace.FreeAll();
}

Status NcclCommunicator::Run(const Call& call, Deadline deadline) {
  ASSIGN_OR_RETURN(const std::unique_ptr<PendingCall> pending, Start(call, deadline));
  return pending->Wait(deadline);
}

Result<std::unique_ptr<PendingCall>> NcclCommunicator::Start(const Call& call, Deadline deadline) {
  RETURN_IF_ERROR(shared_->connection->broken());
  const gpu::Bound bound(parts_.runtime, parts_.device);
  if (!bound.status().ok()) return bound.status();
  Workspace& workspace = *shared_->workspace;
  void* stream = call.stream != nullptr ? call.stream : workspace.stream();
  // Allocations and copies, like the library's calls, can block behind an operation that never
  // ends.
  const Connection::Inside inside(shared_->connection.get());
  ASSIGN_OR_RETURN(CallInFlight* const begun, workspace.Begin());
  CallInFlight* flight = begun;
  flight->captured = call.stream != nullptr && parts_.runtime->IsCapturing(stream);
  Status verdict;
  Status status;
  if (call.stream == nullptr) {
    status = parts_.runtime->FollowDefault(stream, flight->end);
    if (!status.ok()) return shared_->Break(status);
  }
  const bool message = HasPeer(call.operation);
  if (message && !flight->captured) {
    status =
        shared_->messages.Add(&workspace, flight, call, shared_->connection->membership(), stream);
  } else {
    status = shared_->Flush(deadline);
    if (status.ok()) status = Enqueue(call, stream, flight, deadline, &verdict);
  }
  if (status.ok() && flight->captured) status = verdict;
  if (!status.ok()) {
    // Memory that an operation in the stream may still use is not reused.
    if (flight->blocks.empty()) workspace.LetGo(flight);
    return status;
  }
  return std::unique_ptr<PendingCall>(std::make_unique<NcclPending>(shared_, flight, verdict));
}

Status NcclCommunicator::Enqueue(const Call& call, void* stream, CallInFlight* flight,
                                 Deadline deadline, Status* verdict) {
  gpu::Runtime* runtime = parts_.runtime;
  const Membership& membership = shared_->connection->membership();
  Staging staging(shared_->workspace.get(), flight, call, membership.rank, membership.size(),
                  stream);
  // In a graph, events would measure nothing.
  if (!flight->captured) {
    RETURN_IF_ERROR(runtime->RecordEvent(flight->begin, stream));
  }
  RETURN_IF_ERROR(staging.Before());
  // A single rank runs no algorithm: every configuration counts as applied.
  if (call.config.IsDefault() || membership.size() == 1) {
    RETURN_IF_ERROR(Launch(call, staging, stream, deadline));
  } else {
    const PluginPin::Hold hold(pin_, call.config, deadline);
    if (!hold.status().ok()) return hold.status();
    RETURN_IF_ERROR(Launch(call, staging, stream, deadline));
    *verdict = hold.Applied(NameOf(*parts_.api, call.config));
  }
  Status status = staging.After();
  if (status.ok() && !flight->captured) status = runtime->RecordEvent(flight->end, stream);
  // The other ranks have begun: the work in the stream cannot be undone.
  if (!status.ok()) return shared_->Break(status);
  flight->started = !flight->captured;
  return Status();
}

Status NcclCommunicator::Launch(const Call& call, const Staging& staging, void* stream,
                                Deadline deadline) {
  // Not Look(): between GroupStart and GroupEnd the library accepts only the call itself.
  if (Status status = shared_->connection->Usable(); !status.ok()) return shared_->Break(status);
  Status status = shared_->connection->Settle(Collective(call, staging, stream), deadline);
  if (!status.ok()) return shared_->Break(status);
  return Status();
}

NcclResult NcclCommunicator::Collective(const Call& call, const Staging& staging,
                                        void* stream) const {
  const NcclApi& api = *parts_.api;
  NcclComm comm = shared_->connection->comm();
  const int type = NcclType(staging.type());
  const int reduce = NcclReduce(call.reduce);
  const std::vector<Staging::Part>& parts = staging.parts();
  switch (call.operation) {
    case Operation::kAllReduce: {
      if (parts.size() == 1) {
        return api.AllReduce(parts[0].in, parts[0].out, parts[0].count, type, reduce, comm, stream);
      }
      NcclResult result = api.GroupStart();
      for (const Staging::Part& part : parts) {
        if (result != kSuccess) break;
        result = api.AllReduce(part.in, part.out, part.count, type, reduce, comm, stream);
      }
      const NcclResult ended = api.GroupEnd();  // always: the thread must leave the group
      return result != kSuccess ? result : ended;
    }
    case Operation::kBroadcast: {
      // Read on the root only, but some versions require an address everywhere.
      const void* in = parts[0].in != nullptr ? parts[0].in : parts[0].out;
      return api.Broadcast(in, parts[0].out, parts[0].count, type, call.peer, comm, stream);
    }
    case Operation::kReduce:
      return api.Reduce(parts[0].in, parts[0].out, parts[0].count, type, reduce, call.peer, comm,
                        stream);
    case Operation::kAllGather:
      return api.AllGather(parts[0].in, parts[0].out, parts[0].count, type, comm, stream);
    case Operation::kReduceScatter:
      return api.ReduceScatter(parts[0].in, parts[0].out, parts[0].count, type, reduce, comm,
                               stream);
    case Operation::kAllToAll: {
      const size_t bytes = parts[0].count * SizeOf(staging.type());
      const auto* in = static_cast<const char*>(parts[0].in);
      auto* out = static_cast<char*>(parts[0].out);
      NcclResult result = api.GroupStart();
      for (int peer = 0; peer < shared_->connection->membership().size(); ++peer) {
        if (result != kSuccess) break;
        const size_t offset = static_cast<size_t>(peer) * bytes;
        result = api.Send(in + offset, parts[0].count, type, peer, comm, stream);
        if (result != kSuccess) break;
        result = api.Recv(out + offset, parts[0].count, type, peer, comm, stream);
      }
      const NcclResult ended = api.GroupEnd();
      return result != kSuccess ? result : ended;
    }
    case Operation::kSend:
      return api.Send(parts[0].in, parts[0].count, type, call.peer, comm, stream);
    case Operation::kRecv:
      return api.Recv(parts[0].out, parts[0].count, type, call.peer, comm, stream);
    case Operation::kBarrier: {
      void* word = shared_->workspace->barrier_word();
      return api.AllReduce(word, word, 1, NcclType(DataType::kI32), NcclReduce(ReduceOp::kMax),
                           comm, stream);
    }
  }
  return kSuccess;
}

void NcclCommunicator::Interrupt(const std::string& reason) noexcept {
  shared_->connection->Interrupt(reason);
}

void NcclCommunicator::Abandon() noexcept {
  static_cast<void>(shared_->Break(Invalid("the group was given up after an error")));
}

Status NcclCommunicator::CanRun(const Call& call) const {
  if (NcclType(call.type) < 0) {
    return Unavailable(Format("{} has no type {}", parts_.api->title, DataTypeName(call.type)));
  }
  if (call.wire.has_value() && !parts_.runtime->Converts()) {
    return Unavailable("types are not converted on this kind of GPU");
  }
  RETURN_IF_ERROR(CheckAlignment(call));
  if (call.config.IsDefault()) return Status();
  if (!parts_.choose) {
    return Invalid("a call names a configuration, but the group was created without 'choose'");
  }
  return pin_.CanUse(call.operation, call.config, shared_->connection->membership().size());
}

Status NcclCommunicator::CheckAlignment(const Call& call) const {
  if (call.memory == Memory::kHost) return Status();
  const size_t width = SizeOf(call.type);
  const auto reachable = [&](const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer) % width == 0 ||
           (call.memory == Memory::kAuto && !parts_.runtime->IsDevicePointer(pointer));
  };
  bool all = reachable(call.in) && reachable(call.out);
  for (const Tensor& tensor : call.tensors) {
    all = all && reachable(tensor.in) && reachable(tensor.out);
  }
  if (all) return Status();
  return Invalid(Format("GPU memory of {} must lie at a multiple of {} bytes",
                        DataTypeName(call.type), width));
}

Result<std::unique_ptr<Communicator>> NcclCommunicator::Split(const std::vector<int>& members,
                                                              const std::string& name,
                                                              Deadline deadline) {
  if (members.empty()) return std::unique_ptr<Communicator>();
  const Membership& ours = shared_->connection->membership();
  Membership theirs;
  theirs.store = ours.store;
  theirs.log = ours.log;
  theirs.name = name;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i] == ours.rank) theirs.rank = static_cast<int>(i);
    theirs.job_ranks.push_back(ours.job_ranks[static_cast<size_t>(members[i])]);
  }
  return Make(parts_, std::move(theirs), deadline);
}

}  // namespace diapason::comm::nccl
