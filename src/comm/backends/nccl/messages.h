#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/backends/nccl/connection.h"
#include "comm/backends/nccl/staging.h"
#include "comm/backends/nccl/workspace.h"
#include "diapason/comm.h"

namespace diapason::comm::nccl {

// Sends and receives that were started but not yet passed to the library. The library runs a
// communicator's operations one after the other: a send that waits for its receiver would block the
// receive behind it, and two ranks that send to each other would deadlock. So they are collected
// and begun together in one group of the library: when one of them is waited for or polled, and
// before any other call.
class Messages {
 public:
  bool empty() const { return waiting_.empty(); }
  // REQUIRES: call is a send or a recv.
  Status Add(Workspace* workspace, CallInFlight* flight, const Call& call,
             const Membership& membership, void* stream);
  // Enqueues all of them in their streams.
  Status Begin(Connection* connection, gpu::Runtime* runtime, Deadline deadline);
  // Drops them: they never begin.
  void Drop();

 private:
  struct Message {
    Call call;
    void* stream = nullptr;
    CallInFlight* flight = nullptr;
    std::unique_ptr<Staging> staging;
  };
  std::vector<std::unique_ptr<Message>> waiting_;
};

}  // namespace diapason::comm::nccl
