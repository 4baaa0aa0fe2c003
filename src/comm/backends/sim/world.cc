#include "comm/backends/sim/world.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/encoding.h"
#include "base/random.h"
#include "base/text.h"
#include "domain/collectives.h"

namespace diapason::comm::sim {
namespace {

// A stream of random numbers beside the world's own.
constexpr uint64_t kTransferNoise = 3;

bool SameCall(const Call& a, const Call& b) {
  return a.operation == b.operation && a.count == b.count && a.type == b.type &&
         (!Reduces(a.operation) || a.reduce == b.reduce) &&
         (!HasRoot(a.operation) || a.peer == b.peer) && a.config == b.config;
}

std::string RoundText(const SimRound& round) {
  return round.split ? "split" : CallText(round.call);
}

RankLayout LayoutOf(const Cluster& cluster, const std::vector<int>& members) {
  std::map<int, int> nodes;
  for (const int member : members) ++nodes[member / cluster.gpus_per_node];
  RankLayout layout;
  layout.ranks = static_cast<int>(members.size());
  layout.nodes = static_cast<int>(nodes.size());
  for (const auto& [node, count] : nodes) layout.per_node = std::max(layout.per_node, count);
  return layout;
}

}  // namespace

World::World(std::shared_ptr<const Cluster> cluster, std::vector<int> members,
             const std::string& name, uint64_t seed)
    : cluster_(std::move(cluster)),
      members_(std::move(members)),
      seed_(seed),
      stream_(Fnv1a64(name)),
      layout_(LayoutOf(*cluster_, members_)),
      gone_(members_.size(), false),
      next_(members_.size(), 0) {
  FindStragglers();
}

int World::LocalRank(int rank) const {
  const int node = members_[static_cast<size_t>(rank)] / cluster_->gpus_per_node;
  int before = 0;
  for (int other = 0; other < rank; ++other) {
    if (members_[static_cast<size_t>(other)] / cluster_->gpus_per_node == node) ++before;
  }
  return before;
}

// --- Collectives ---

Result<std::shared_ptr<SimRound>> World::Arrive(int rank, const Call& call, double time) {
  return Enter(rank, call, nullptr, "", time);
}

Result<std::shared_ptr<SimRound>> World::ArriveAtSplit(int rank, const std::vector<int>& members,
                                                       const std::string& name, double time) {
  return Enter(rank, BarrierCall(), &members, name, time);
}

// The round that is this rank's next.
std::shared_ptr<SimRound> World::FindRound(int rank, const Call& call, bool split) {
  const uint64_t number = next_[static_cast<size_t>(rank)]++;
  const size_t index = static_cast<size_t>(number - first_open_);
  if (index < open_.size()) return open_[index];
  auto round = std::make_shared<SimRound>();
  round->number = number;
  round->first = rank;
  round->call = call;
  round->split = split;
  round->here.resize(members_.size());
  round->buffers.resize(members_.size());
  if (split) round->wishes.resize(members_.size());
  open_.push_back(round);
  return round;
}

Result<std::shared_ptr<SimRound>> World::Enter(int rank, const Call& call,
                                               const std::vector<int>* members,
                                               const std::string& name, double time) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!broken_.ok()) return broken_;
  const bool split = members != nullptr;
  std::shared_ptr<SimRound> round = FindRound(rank, call, split);
  if (round->split != split || !SameCall(round->call, call)) {
    const std::string mine = split ? "split" : CallText(call);
    const std::string theirs = RoundText(*round);
    const bool later = rank > round->first;
    BreakLocked(Invalid(Format("rank {} calls {} where rank {} calls {}",
                               later ? rank : round->first, (later ? mine : theirs),
                               later ? round->first : rank, (later ? theirs : mine))));
    lock.unlock();
    Wake();
    return broken_;
  }
  if (gone_count_ > 0) {
    // A rank that has left has not arrived at this round: its leaving broke the rounds that it had
    // arrived at.
    BreakLocked(
        PeerLost(Missing(*round) + ": its group was destroyed before " + RoundText(*round)));
    lock.unlock();
    Wake();
    return broken_;
  }
  const size_t index = static_cast<size_t>(rank);
  round->here[index] = true;
  round->buffers[index] = {call.in, call.out};
  if (split) round->wishes[index] = {members, name};
  round->ready = round->count == 0 ? time : std::max(round->ready, time);
  ++round->count;
  if (round->count == size()) Complete(round.get(), std::move(lock));
  return round;
}

void World::Complete(SimRound* round, std::unique_lock<std::mutex> lock) {
  // Every rank has arrived at the earlier rounds, so this is the first open one.
  const std::shared_ptr<SimRound> keep = open_.front();
  open_.pop_front();
  ++first_open_;
  round->state.store(Event::kMoving, std::memory_order_relaxed);
  ++movers_;
  // A round may read what the previous one writes.
  moved_.wait(lock, [this] { return !moving_; });
  moving_ = true;
  lock.unlock();

  Status status;
  try {
    status = Price(round);
    if (status.ok() && round->split) {
      status = SplitUp(round);
    } else if (status.ok()) {
      MoveData(round->call, round->buffers);
    }
  } catch (const std::bad_alloc&) {
    status = Unavailable("not enough memory to move the data of " + RoundText(*round));
  }

  lock.lock();
  moving_ = false;
  --movers_;
  round->status = status;
  round->state.store(status.ok() ? Event::kDone : Event::kFailed, std::memory_order_release);
  if (!status.ok()) BreakLocked(status);
  lock.unlock();
  moved_.notify_all();
  Wake();
}

// --- Sends and receives ---

Result<std::shared_ptr<Transfer>> World::Post(int rank, const Call& call, double time) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!broken_.ok()) return broken_;
  const auto fail = [&](const Status& why) {
    BreakLocked(why);
    lock.unlock();
    Wake();
    return why;
  };
  const bool sends = call.operation == Operation::kSend;
  const std::pair<int, int> key = sends ? std::pair(rank, call.peer) : std::pair(call.peer, rank);
  Queue& queue = queues_[key];
  if (queue.waiting.empty() || queue.sends == sends) {
    if (gone_[static_cast<size_t>(call.peer)]) {
      return fail(PeerLost(Format("rank {} has left before the {}", call.peer, CallText(call))));
    }
    auto transfer = std::make_shared<Transfer>();
    transfer->call = call;
    transfer->since = time;
    queue.sends = sends;
    queue.waiting.push_back(transfer);
    return transfer;
  }
  const std::shared_ptr<Transfer> transfer = queue.waiting.front();
  queue.waiting.pop_front();
  const Call& other = transfer->call;
  if (other.count != call.count || other.type != call.type) {
    queue.waiting.push_front(transfer);
    const bool later = rank > call.peer;
    return fail(Invalid(Format("rank {} calls {} where rank {} calls {}", later ? rank : call.peer,
                               CallText(later ? call : other), later ? call.peer : rank,
                               CallText(later ? other : call))));
  }
  const size_t bytes = call.count * SizeOf(call.type);
  std::memmove(sends ? other.out : call.out, sends ? call.in : other.in, bytes);
  const int gpus = cluster_->gpus_per_node;
  const bool same_node = members_[static_cast<size_t>(key.first)] / gpus ==
                         members_[static_cast<size_t>(key.second)] / gpus;
  const uint64_t number = sent_[key]++;
  const CounterRandom random(
      seed_, MixBits(stream_ ^ MixBits(kTransferNoise)) ^
                 (static_cast<uint64_t>(key.first) << 32 | static_cast<uint64_t>(key.second)));
  transfer->ready = std::max(transfer->since, time);
  transfer->seconds = SendSeconds(*cluster_, same_node, bytes) *
                      std::exp(cluster_->noise.sigma * random.Normal(number));
  transfer->state.store(Event::kDone, std::memory_order_release);
  lock.unlock();
  Wake();
  return transfer;
}

// --- Waiting, breaking, leaving ---

Status World::Await(int rank, const Event& event, Deadline deadline) {
  Shard& shard = shards_[static_cast<size_t>(rank) % kShards];
  std::unique_lock<std::mutex> lock(shard.mutex);
  while (!shard.changed.wait_until(lock, deadline, [&] { return event.over(); })) {
    lock.unlock();
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      // While data is being moved, the end is near and the buffers are in use.
      if (event.state.load(std::memory_order_relaxed) == Event::kOpen) {
        BreakLocked(TimedOut(Missing(event)));
      }
    }
    Wake();
    lock.lock();
    deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  }
  return event.status;
}

// The ranks that an open event waits for, and the call they are in.
std::string World::Missing(const Event& event) const {
  for (const std::shared_ptr<SimRound>& round : open_) {
    if (round.get() != &event) continue;
    std::vector<int> missing;
    for (int rank = 0; rank < size(); ++rank) {
      const size_t index = static_cast<size_t>(rank);
      const bool lost = gone_count_ > 0 ? gone_[index] : !round->here[index];
      if (lost) missing.push_back(rank);
    }
    if (gone_count_ > 0)
      return RankList(missing) + (missing.size() == 1 ? " has" : " have") + " left";
    return RankList(missing) + (missing.size() == 1 ? " has" : " have") + " not called " +
           RoundText(*round);
  }
  for (const auto& [key, queue] : queues_) {
    for (const std::shared_ptr<Transfer>& transfer : queue.waiting) {
      if (transfer.get() != &event) continue;
      return Format("rank {} has not answered the {}", queue.sends ? key.second : key.first,
                    CallText(transfer->call));
    }
  }
  return "the other ranks have not come";
}

void World::Break(const Status& why) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    BreakLocked(why);
  }
  Wake();
}

void World::BreakLocked(const Status& why) {
  if (!broken_.ok()) return;
  broken_ = why;
  for (const std::shared_ptr<SimRound>& round : open_) {
    round->status = why;
    round->state.store(Event::kFailed, std::memory_order_release);
  }
  for (auto& [key, queue] : queues_) {
    for (const std::shared_ptr<Transfer>& transfer : queue.waiting) {
      transfer->status = why;
      transfer->state.store(Event::kFailed, std::memory_order_release);
    }
  }
  open_.clear();
  queues_.clear();
}

void World::Wake() {
  for (Shard& shard : shards_) {
    // A thread that is checking the state holds the lock, and sleeps before this thread gets it.
    { const std::lock_guard<std::mutex> lock(shard.mutex); }
    shard.changed.notify_all();
  }
}

void World::Leave(int rank) {
  std::unique_lock<std::mutex> lock(mutex_);
  gone_[static_cast<size_t>(rank)] = true;
  ++gone_count_;
  std::string wanted = open_.empty() ? "" : RoundText(*open_.front());
  for (const auto& [key, queue] : queues_) {
    const bool ours = key.first == rank || key.second == rank;
    if (ours && !queue.waiting.empty()) wanted = CallText(queue.waiting.front()->call);
  }
  if (!wanted.empty()) {
    BreakLocked(
        PeerLost(Format("rank {} has left: its group was destroyed during {}", rank, wanted)));
  }
  moved_.wait(lock, [this] { return movers_ == 0; });
  lock.unlock();
  Wake();
}

}  // namespace diapason::comm::sim
