#pragma once

#include <memory>

#include "comm/backends/nccl/communicator.h"

namespace diapason::comm::nccl {

// A call that is in a stream, or in a graph.
class NcclPending : public PendingCall {
 public:
  NcclPending(std::shared_ptr<CommShared> shared, CallInFlight* flight, Status verdict);
  ~NcclPending() override;

  Status Wait(Deadline deadline) override;
  bool Done() override;
  double Seconds() const override { return seconds_; }
  bool Captured() const override { return captured_; }

 private:
  // True at the end of the operation; its status is then in result_.
  bool Ask();
  void Finish(Status result);

  std::shared_ptr<CommShared> shared_;
  CallInFlight* flight_;
  Status verdict_;
  bool captured_;
  bool done_;
  Status result_;
  double seconds_ = -1;
};

}  // namespace diapason::comm::nccl
