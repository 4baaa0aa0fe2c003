#include "comm/backends/sim/communicator.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "domain/collectives.h"

namespace diapason::comm::sim {
namespace {

// A collective that this rank has started.
class PendingRound : public PendingCall {
 public:
  PendingRound(std::shared_ptr<RankState> state, RankState::Item item)
      : state_(std::move(state)), item_(std::move(item)) {}

  Status Wait(Deadline deadline) override {
    RETURN_IF_ERROR(item_.world->Await(item_.rank, *item_.round, deadline));
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->Settle();
    state_->timeline.Finish(item_.timed);
    return {};
  }
  bool Done() override { return item_.round->over(); }
  double Seconds() const override {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    return item_.timed->finished ? item_.timed->end - item_.timed->started : -1;
  }

 private:
  const std::shared_ptr<RankState> state_;
  const RankState::Item item_;
};

// A send or a receive.
class PendingTransfer : public PendingCall {
 public:
  PendingTransfer(std::shared_ptr<RankState> state, std::shared_ptr<World> world, int rank,
                  std::shared_ptr<Transfer> transfer, double started)
      : state_(std::move(state)),
        world_(std::move(world)),
        rank_(rank),
        transfer_(std::move(transfer)),
        started_(started) {}

  Status Wait(Deadline deadline) override {
    RETURN_IF_ERROR(world_->Await(rank_, *transfer_, deadline));
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->timeline.MoveTo(transfer_->ready + transfer_->seconds);
    return {};
  }
  bool Done() override { return transfer_->over(); }
  double Seconds() const override {
    return transfer_->over() ? transfer_->ready + transfer_->seconds - started_ : -1;
  }

 private:
  const std::shared_ptr<RankState> state_;
  const std::shared_ptr<World> world_;
  const int rank_;
  const std::shared_ptr<Transfer> transfer_;
  const double started_;
};

}  // namespace

void RankState::Settle() {
  for (const Item& item : items) {
    if (!item.round->over() || !item.round->status.ok()) continue;
    Timeline::Know(item.timed, item.round->ready, item.world->RankSeconds(*item.round, item.rank),
                   item.round->channels);
  }
  timeline.unfinished();
  std::erase_if(items, [](const Item& item) {
    return item.timed->finished || (item.round->over() && !item.round->status.ok());
  });
}

SimCommunicator::SimCommunicator(std::shared_ptr<World> world, int rank,
                                 std::shared_ptr<RankState> state,
                                 std::chrono::milliseconds timeout)
    : world_(std::move(world)), rank_(rank), state_(std::move(state)), timeout_(timeout) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  stream_ = state_->streams++;
}

SimCommunicator::~SimCommunicator() {
  world_->Leave(rank_);
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::erase_if(state_->items, [&](const RankState::Item& item) { return item.world == world_; });
  state_->timeline.Drop(stream_);
}

Status SimCommunicator::Run(const Call& call, Deadline deadline) {
  ASSIGN_OR_RETURN(const std::unique_ptr<PendingCall> pending, Start(call, deadline));
  return pending->Wait(deadline);
}

Result<std::unique_ptr<PendingCall>> SimCommunicator::Start(const Call& call, Deadline deadline) {
  return HasPeer(call.operation) ? StartTransfer(call, deadline) : StartCollective(call, deadline);
}

Result<std::unique_ptr<PendingCall>> SimCommunicator::StartCollective(const Call& call,
                                                                      Deadline deadline) {
  // It may read what an earlier receive writes.
  RETURN_IF_ERROR(AwaitTransfers(deadline));
  RankState::Item item;
  item.world = world_;
  item.rank = rank_;
  double time = 0;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    time = state_->timeline.now();
  }
  ASSIGN_OR_RETURN(item.round, world_->Arrive(rank_, call, time));
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    // Collectives that the program does not wait for must not pile up.
    if (state_->items.size() >= 64) state_->Settle();
    item.timed = state_->timeline.Start(stream_);
    state_->items.push_back(item);
  }
  return std::unique_ptr<PendingCall>(std::make_unique<PendingRound>(state_, std::move(item)));
}

Result<std::unique_ptr<PendingCall>> SimCommunicator::StartTransfer(const Call& call,
                                                                    Deadline deadline) {
  RETURN_IF_ERROR(AwaitCollectives(deadline));
  std::erase_if(transfers_, [](const auto& transfer) { return transfer->over(); });
  const double time = Now();
  ASSIGN_OR_RETURN(std::shared_ptr<Transfer> transfer, world_->Post(rank_, call, time));
  transfers_.push_back(transfer);
  return std::unique_ptr<PendingCall>(
      std::make_unique<PendingTransfer>(state_, world_, rank_, std::move(transfer), time));
}

// Waits until all ranks have joined every collective that this rank has started here.
Status SimCommunicator::AwaitCollectives(Deadline deadline) {
  std::vector<std::shared_ptr<SimRound>> rounds;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    for (const RankState::Item& item : state_->items) {
      if (item.world == world_ && !item.round->over()) rounds.push_back(item.round);
    }
  }
  for (const std::shared_ptr<SimRound>& round : rounds) {
    RETURN_IF_ERROR(world_->Await(rank_, *round, deadline));
  }
  return {};
}

Status SimCommunicator::AwaitTransfers(Deadline deadline) {
  for (const std::shared_ptr<Transfer>& transfer : transfers_) {
    RETURN_IF_ERROR(world_->Await(rank_, *transfer, deadline));
  }
  transfers_.clear();
  return {};
}

void SimCommunicator::Interrupt(const std::string& reason) noexcept {
  try {
    world_->Break(TimedOut(reason));
  } catch (const std::bad_alloc&) {
    // Then the other ranks reach their own deadlines.
    return;
  }
}

Result<std::unique_ptr<Communicator>> SimCommunicator::Split(const std::vector<int>& members,
                                                             const std::string& name,
                                                             Deadline deadline) {
  RETURN_IF_ERROR(AwaitTransfers(deadline));
  ASSIGN_OR_RETURN(const std::shared_ptr<SimRound> arrived,
                   world_->ArriveAtSplit(rank_, members, name, Now()));
  const SimRound& round = *arrived;
  RETURN_IF_ERROR(world_->Await(rank_, round, deadline));
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->timeline.MoveTo(round.ready + world_->RankSeconds(round, rank_));
  }
  if (members.empty()) return std::unique_ptr<Communicator>();
  const auto place = std::find(members.begin(), members.end(), rank_);
  return std::unique_ptr<Communicator>(std::make_unique<SimCommunicator>(
      round.children[static_cast<size_t>(rank_)], static_cast<int>(place - members.begin()), state_,
      timeout_));
}

double SimCommunicator::LinkPeak() const {
  const Cluster& cluster = world_->cluster();
  const RankLayout& layout = world_->layout();
  const double intra = cluster.links.intra_gbps * 1e9;
  if (layout.nodes == 1) return intra;
  const double inter = cluster.links.inter_gbps * 1e9 * layout.per_node / cluster.gpus_per_node;
  return layout.per_node == 1 ? inter : std::min(intra, inter);
}

double SimCommunicator::Now() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->timeline.now();
}

Status SimCommunicator::SimulateCompute(double seconds) {
  if (!(seconds >= 0 && seconds <= 1e9)) {
    return Invalid(Format("cannot compute for {:g} seconds", seconds));
  }
  const Deadline deadline = std::chrono::steady_clock::now() + timeout_;
  std::vector<RankState::Item> items;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    items = state_->items;
  }
  // The slowdown of compute is known only when all ranks have started the collectives.
  for (const RankState::Item& item : items) {
    const Status status = item.world->Await(item.rank, *item.round, deadline);
    if (!status.ok()) return status.WithContext("computing beside a collective");
  }
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->Settle();
  const double factor = world_->ComputeFactor(rank_, state_->computed++);
  state_->timeline.Work(seconds * factor, world_->cluster().compute);
  return {};
}

}  // namespace diapason::comm::sim
