#include "comm/backends/nccl/messages.h"

#include <utility>

#include "comm/backends/nccl/types.h"

namespace diapason::comm::nccl {

Status Messages::Add(Workspace* workspace, CallInFlight* flight, const Call& call,
                     const Membership& membership, void* stream) {
  auto message = std::make_unique<Message>();
  message->call = call;
  message->stream = stream;
  message->flight = flight;
  message->staging = std::make_unique<Staging>(workspace, flight, message->call, membership.rank,
                                               membership.size(), stream);
  Status status = workspace->runtime()->RecordEvent(flight->begin, stream);
  if (status.ok()) status = message->staging->Before();
  if (!status.ok()) return status;
  flight->deferred = true;
  waiting_.push_back(std::move(message));
  return Status();
}

Status Messages::Begin(Connection* connection, gpu::Runtime* runtime, Deadline deadline) {
  const std::vector<std::unique_ptr<Message>> messages = std::move(waiting_);
  waiting_.clear();
  for (const auto& message : messages) message->flight->deferred = false;
  RETURN_IF_ERROR(connection->Usable());
  const NcclApi& api = connection->api();
  NcclResult result = api.GroupStart();
  for (const auto& message : messages) {
    if (result != kSuccess) break;
    const Staging::Part& part = message->staging->parts()[0];
    const int type = NcclType(message->call.type);
    const int peer = message->call.peer;
    result = message->call.operation == Operation::kSend
                 ? api.Send(part.in, part.count, type, peer, connection->comm(), message->stream)
                 : api.Recv(part.out, part.count, type, peer, connection->comm(), message->stream);
  }
  const NcclResult ended = api.GroupEnd();  // always: the thread must leave the group
  Status status = connection->Settle(result != kSuccess ? result : ended, deadline);
  for (const auto& message : messages) {
    if (status.ok()) status = message->staging->After();
    if (status.ok()) status = runtime->RecordEvent(message->flight->end, message->stream);
    message->flight->started = status.ok();
  }
  return status;
}

void Messages::Drop() {
  for (const auto& message : waiting_) message->flight->deferred = false;
  waiting_.clear();
}

}  // namespace diapason::comm::nccl
