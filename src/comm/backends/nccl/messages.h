#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/backends/nccl/connection.h"
#include "comm/backends/nccl/staging.h"
#include "comm/backends/nccl/workspace.h"
#include "diapason/comm.h"

namespace diapason::comm::nccl {

// Sends and receives that were started and not begun. The library runs a communicator's operations
// one after the other: a send that waits for its receiver would keep the receive behind it from
// beginning, and two ranks that send to each other would wait for ever. What is started together is
// therefore collected, and begun together, in one group of the library: when one of them is waited
// for or asked for, and before any other call.
class Messages {
 public:
  bool empty() const { return waiting_.empty(); }
  // REQUIRES: call is a send or a recv.
  Status Add(Workspace* workspace, CallInFlight* flight, const Call& call,
             const Membership& membership, void* stream);
  // Puts all of them into their streams.
  Status Begin(Connection* connection, gpu::Runtime* runtime, Deadline deadline);
  // Forgets them: they never begin.
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
