#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/backends/sim/timeline.h"
#include "comm/backends/sim/world.h"
#include "comm/communicator.h"

namespace diapason::comm::sim {

// One rank's GPU: the clock and the running collectives, shared by all communicators of the rank.
struct RankState {
  // A collective in flight.
  struct Item {
    std::shared_ptr<World> world;
    std::shared_ptr<SimRound> round;
    int rank = 0;
    Timeline::Handle timed;
  };

  std::mutex mutex;
  Timeline timeline;
  std::vector<Item> items;
  uint64_t computed = 0;
  int streams = 0;

  // Passes new results to the timeline, and drops finished items. REQUIRES: mutex is held.
  void Settle();
};

class SimCommunicator : public Communicator {
 public:
  SimCommunicator(std::shared_ptr<World> world, int rank, std::shared_ptr<RankState> state,
                  std::chrono::milliseconds timeout);
  ~SimCommunicator() override;

  Status Run(const Call& call, Deadline deadline) override;
  Result<std::unique_ptr<PendingCall>> Start(const Call& call, Deadline deadline) override;
  void Interrupt(const std::string& reason) noexcept override;
  Status CanRun(const Call& call) const override { return world_->CanRun(call); }
  Result<std::unique_ptr<Communicator>> Split(const std::vector<int>& members,
                                              const std::string& name, Deadline deadline) override;
  int LocalRank() const override { return world_->LocalRank(rank_); }
  int Nodes() const override { return world_->layout().nodes; }
  std::string Description() const override { return Describe(world_->cluster()); }
  double LinkPeak() const override;
  double Now() const override;
  Status SimulateCompute(double seconds) override;

 private:
  Result<std::unique_ptr<PendingCall>> StartCollective(const Call& call, Deadline deadline);
  Result<std::unique_ptr<PendingCall>> StartTransfer(const Call& call, Deadline deadline);
  Status AwaitCollectives(Deadline deadline);
  Status AwaitTransfers(Deadline deadline);

  const std::shared_ptr<World> world_;
  const int rank_;
  const std::shared_ptr<RankState> state_;
  const std::chrono::milliseconds timeout_;
  int stream_ = 0;
  std::vector<std::shared_ptr<Transfer>> transfers_;
};

}  // namespace diapason::comm::sim
