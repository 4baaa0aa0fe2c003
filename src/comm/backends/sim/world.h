#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "comm/backends/sim/cluster.h"
#include "comm/backends/sim/data.h"
#include "comm/backends/sim/library.h"
#include "comm/communicator.h"

namespace diapason::comm::sim {

// An operation of several ranks: open until the last of them has arrived.
struct Event {
  enum State : int { kOpen, kMoving, kDone, kFailed };
  std::atomic<int> state{kOpen};
  // The members below are written before the state becomes kDone or kFailed, and never after.
  Status status;
  double ready = 0;    // virtual time at which the last rank arrived
  double seconds = 0;  // duration on every rank, before the rank's own noise
  int channels = 0;

  bool over() const { return state.load(std::memory_order_acquire) >= kDone; }
};

class World;

// One collective of a world, in the order in which all ranks call them.
struct SimRound : Event {
  uint64_t number = 0;
  int first = 0;  // the rank that arrived first; the others must make the same call
  Call call;
  bool split = false;
  int count = 0;
  std::vector<bool> here;
  std::vector<RankBuffers> buffers;
  // For a split: each rank's color and key, and the resulting worlds.
  struct Wish {
    const std::vector<int>* members = nullptr;
    std::string name;
  };
  std::vector<Wish> wishes;
  std::vector<std::shared_ptr<World>> children;
};

// A send and its receive.
struct Transfer : Event {
  Call call;  // of the side that arrived first
  double since = 0;
};

// The ranks of one communicator, all threads of this process, and their operations. Thread-safe.
//
// The last rank to arrive at a collective moves the data for all ranks, outside the lock, and
// computes the cost of the call. The first error breaks the world: every waiting rank and every
// later call gets that error.
class World {
 public:
  // `members` are GPU numbers in the cluster: GPU m is on node m / gpus_per_node.
  World(std::shared_ptr<const Cluster> cluster, std::vector<int> members, const std::string& name,
        uint64_t seed);

  const Cluster& cluster() const { return *cluster_; }
  const RankLayout& layout() const { return layout_; }
  int size() const { return layout_.ranks; }
  // The rank's index among the ranks of its node.
  int LocalRank(int rank) const;
  // Whether the operation can run, with its configuration; the same on all ranks.
  Status CanRun(const Call& call) const;

  // Rank `rank` calls a collective at virtual time `time`.
  Result<std::shared_ptr<SimRound>> Arrive(int rank, const Call& call, double time);
  Result<std::shared_ptr<SimRound>> ArriveAtSplit(int rank, const std::vector<int>& members,
                                                  const std::string& name, double time);
  // Rank `rank` sends or receives.
  Result<std::shared_ptr<Transfer>> Post(int rank, const Call& call, double time);

  // Waits until the event is over, at most until the deadline: then the world breaks.
  Status Await(int rank, const Event& event, Deadline deadline);

  void Break(const Status& why);
  // The rank's communicator is destroyed. Returns when no other rank uses its buffers any more.
  void Leave(int rank);

  // The duration of a round on this rank, including its own noise.
  double RankSeconds(const SimRound& round, int rank) const;
  // How much slower this rank computes, the index-th time.
  double ComputeFactor(int rank, uint64_t index) const;

 private:
  struct Queue {
    bool sends = false;  // whether the waiting side sends or receives
    std::deque<std::shared_ptr<Transfer>> waiting;
  };
  // Sharded: thousands of ranks that wake up at once would otherwise queue for one lock.
  struct Shard {
    std::mutex mutex;
    std::condition_variable changed;
  };
  static constexpr size_t kShards = 64;

  Result<std::shared_ptr<SimRound>> Enter(int rank, const Call& call,
                                          const std::vector<int>* members, const std::string& name,
                                          double time);
  std::shared_ptr<SimRound> FindRound(int rank, const Call& call, bool split);
  void Complete(SimRound* round, std::unique_lock<std::mutex> lock);
  Status SplitUp(SimRound* round) const;
  Status Price(SimRound* round) const;
  void BreakLocked(const Status& why);
  void Wake();
  std::string Missing(const Event& event) const;
  double StragglerFactor(int rank, uint64_t index) const;
  void FindStragglers();

  const std::shared_ptr<const Cluster> cluster_;
  const std::vector<int> members_;
  const uint64_t seed_;
  const uint64_t stream_;  // of random numbers, for this world
  RankLayout layout_;
  // Ranks that may be slow, and each rank's reasons (empty if none is).
  std::vector<int> slow_;
  std::vector<std::vector<const Straggler*>> why_slow_;

  std::mutex mutex_;
  std::condition_variable moved_;
  bool moving_ = false;  // a rank is moving data
  int movers_ = 0;       // that rank, and the ranks waiting to do so
  Status broken_;
  std::vector<bool> gone_;
  int gone_count_ = 0;
  std::deque<std::shared_ptr<SimRound>> open_;
  std::vector<uint64_t> next_;                   // the number of each rank's next round
  uint64_t first_open_ = 0;                      // the number of open_.front()
  std::map<std::pair<int, int>, Queue> queues_;  // by (sender, receiver)
  std::map<std::pair<int, int>, uint64_t> sent_;
  std::array<Shard, kShards> shards_;
};

// The world that all ranks with the same `key` form, once all have arrived; every rank calls this.
// Different sizes, clusters or seeds, and a rank that arrives twice, are errors that name the
// ranks. `name` determines the world's random numbers.
Result<std::shared_ptr<World>> Meet(const std::string& key, const std::string& name, int rank,
                                    int size, const std::shared_ptr<const Cluster>& cluster,
                                    uint64_t seed, Deadline deadline);

// "rank 3", "ranks 3, 5 and 9", "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 92 more".
std::string RankList(const std::vector<int>& ranks);
// "broadcast of 4KiB f32 from rank 0": a call as errors name it.
std::string CallText(const Call& call);

}  // namespace diapason::comm::sim
