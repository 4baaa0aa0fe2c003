#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "comm/backends/gloo/library.h"
#include "comm/backends/gloo/plans.h"
#include "comm/call_queue.h"
#include "comm/communicator.h"
#include "comm/lanes.h"
#include "rendezvous/store.h"

namespace diapason::comm {

// Gloo over TCP. Only the all_reduce has choices: its algorithm, how its sockets wait, and the
// number of parallel contexts.
class GlooCommunicator : public Communicator {
 public:
  // Every rank of `members` (ranks of the whole job, in this communicator's order) calls this.
  static Result<std::unique_ptr<Communicator>> Create(
      int rank, std::vector<int> members, std::string name, rendezvous::RendezvousStore* store,
      std::shared_ptr<gloo::transport::Device> device, std::chrono::milliseconds timeout,
      Deadline deadline);
  ~GlooCommunicator() override;

  Status Run(const Call& call, Deadline deadline) override;
  Result<std::unique_ptr<PendingCall>> Start(const Call& call, Deadline deadline) override;
  void Interrupt(const std::string& reason) noexcept override;
  void Abandon() noexcept override;
  Status CanRun(const Call& call) const override;
  Result<std::unique_ptr<Communicator>> Split(const std::vector<int>& members,
                                              const std::string& name, Deadline deadline) override;
  size_t PlainLimit() const override { return SIZE_MAX; }
  double LinkPeak() const override;

 private:
  // The connections for one purpose, and the plans that use them.
  struct Line {
    std::shared_ptr<GlooMesh> mesh;
    GlooPlans plans;
  };
  // What the connections are for: an all_reduce algorithm or one of the purposes in the source; how
  // they wait; the index of the parallel context.
  using Purpose = std::tuple<int, GlooWait, int>;

  GlooCommunicator(int rank, std::vector<int> members, std::string name,
                   rendezvous::RendezvousStore* store,
                   std::shared_ptr<gloo::transport::Device> device,
                   std::chrono::milliseconds timeout);
  int size() const { return static_cast<int>(members_.size()); }
  bool PowerOfTwo() const { return (size() & (size() - 1)) == 0; }
  // Connects on first use, which all ranks reach in the same call.
  Result<Line*> LineFor(const Purpose& purpose, Deadline deadline);
  Status RunNow(const Call& call, Deadline deadline);
  Status RunAlone(const Call& call);
  Status AllReduce(const Call& call, Deadline deadline);
  Status ReduceScatter(const Call& call, Deadline deadline);
  Result<Line*> AllReduceLine(const Call& call, int part, Deadline deadline);
  Status AllReducePart(const Call& call, int part, Deadline deadline);
  Status OtherCollective(const Call& call, Line* line, std::chrono::milliseconds limit);
  Status ReduceToRoot(const Call& call, Line* line, std::chrono::milliseconds limit);

  const int rank_;
  const std::vector<int> members_;
  const std::string name_;
  rendezvous::RendezvousStore* const store_;
  const std::shared_ptr<gloo::transport::Device> device_;
  const std::chrono::milliseconds timeout_;

  mutable std::mutex mutex_;  // guards the next three, not the contents of the lines
  std::map<Purpose, std::unique_ptr<Line>> lines_;
  std::vector<std::shared_ptr<GlooMesh>> connecting_;
  bool closed_ = false;
  std::vector<std::byte> scratch_;
  Lanes lanes_;
  CallQueue calls_;
  // Separate queues, so that a send and a receive do not wait for each other.
  CallQueue sends_;
  CallQueue receives_;
};

}  // namespace diapason::comm
