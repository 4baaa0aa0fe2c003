#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/backends/nccl/connection.h"
#include "comm/backends/nccl/messages.h"
#include "comm/backends/nccl/pin.h"
#include "comm/backends/nccl/staging.h"
#include "comm/backends/nccl/workspace.h"
#include "comm/communicator.h"

namespace diapason::comm::nccl {

// State shared by a communicator and the calls it has started: a call may be waited for after the
// communicator is gone, and then gets an error.
struct CommShared {
  std::shared_ptr<Workspace> workspace;
  std::unique_ptr<Connection> connection;
  Messages messages;

  // Fails permanently: aborts the library's operations; the program's host memory is not accessed
  // any more.
  Status Break(const Status& why, bool wait = true);
  // Begins the collected messages. REQUIRES: the device is bound.
  Status Flush(Deadline deadline);
};

// NCCL's or RCCL's communicator behind the Communicator interface.
class NcclCommunicator : public Communicator {
 public:
  struct Parts {
    const NcclApi* api = nullptr;
    gpu::Runtime* runtime = nullptr;
    int device = 0;
    bool choose = false;
    double link_peak = 0;
  };
  // Every member calls this.
  static Result<std::unique_ptr<Communicator>> Make(const Parts& parts, Membership membership,
                                                    Deadline deadline);
  ~NcclCommunicator() override;

  Status Run(const Call& call, Deadline deadline) override;
  Result<std::unique_ptr<PendingCall>> Start(const Call& call, Deadline deadline) override;
  void Interrupt(const std::string& reason) noexcept override;
  void Abandon() noexcept override;
  Status CanRun(const Call& call) const override;

  bool TakesDevice() const override { return true; }
  bool ConvertsOnDevice() const override { return parts_.runtime->Converts(); }
  bool Coalesces() const override { return true; }

  Result<std::unique_ptr<Communicator>> Split(const std::vector<int>& members,
                                              const std::string& name, Deadline deadline) override;
  double LinkPeak() const override { return parts_.link_peak; }

 private:
  NcclCommunicator(const Parts& parts, std::shared_ptr<CommShared> shared)
      : parts_(parts), shared_(std::move(shared)) {}
  // Enqueues the call in the stream, between its events. `verdict` is an error for the caller after
  // the operation has ended: it ran, but with another configuration.
  Status Enqueue(const Call& call, void* stream, CallInFlight* flight, Deadline deadline,
                 Status* verdict);
  Status Launch(const Call& call, const Staging& staging, void* stream, Deadline deadline);
  NcclResult Collective(const Call& call, const Staging& staging, void* stream) const;
  // Whether the buffers are aligned for the GPU.
  Status CheckAlignment(const Call& call) const;

  Parts parts_;
  std::shared_ptr<CommShared> shared_;
  PluginPin pin_;
};

}  // namespace diapason::comm::nccl
