#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "played_library.h"

// The ranks of a job in simulated time: a host, a stream for compute and a stream for every
// communicator each. Every process simulates all ranks, so that it knows without asking when the
// others reach a collective; what differs between ranks and iterations comes from the seed.
namespace played {

// Nanoseconds of simulated time.
struct Interval {
  int64_t start = 0;
  int64_t stop = 0;
};

struct ClusterOptions {
  int ranks = 4;
  int self = 0;  // the rank of this process
  uint64_t seed = 1;
  double noise = 1;      // of compute and collectives; 0: none
  double slow_rank = 1;  // the last rank computes so many times as slowly
};

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options);

  // The host enqueues work of so many microseconds on the compute stream.
  void Compute(double microseconds);
  // The host works for so long without the GPU.
  void HostWork(double microseconds);
  // The compute stream waits for what the stream has been given so far.
  void WaitFor(size_t stream);
  // The host waits for the compute stream.
  void Synchronize();

  // A collective of a communicator with this stream: it begins when the compute that was enqueued
  // before it is done, and ends when it has run on all ranks of its group. Rank r is in group
  // groups[r]. `microseconds` is its time once all ranks are there; while it runs, compute is
  // slower by its channels.
  Interval Collective(size_t stream, const std::vector<int>& groups, double microseconds,
                      int channels);
  // In the order of time, of this rank.
  const std::vector<Interval>& compute() const { return computed_; }
  const std::vector<Interval>& collectives() const { return ran_; }

  int64_t host_now() const { return ranks_[static_cast<size_t>(options_.self)].host; }
  int ranks() const { return options_.ranks; }
  int self() const { return options_.self; }
  // A factor around 1 for the n-th collective, alike on all ranks.
  double Noise(uint64_t n) const;

 private:
  struct Busy {
    Interval when;
    int channels = 0;
  };
  struct Rank {
    int64_t host = 0;
    int64_t compute = 0;           // when the stream will be idle
    std::vector<int64_t> streams;  // the same
    std::vector<Busy> busy;        // collectives that compute may meet
  };
  // When work of this length ends that begins at this time beside the collectives.
  static int64_t EndOf(const Rank& rank, int64_t start, double nanoseconds);

  const ClusterOptions options_;
  std::vector<Rank> ranks_;
  uint64_t computes_ = 0;
  uint64_t collectives_ = 0;
  std::vector<Interval> computed_;
  std::vector<Interval> ran_;
};

// What the library believes, and what its collectives cost: ring by default; trees are faster for
// small calls. More channels are faster alone and slow compute down.
class ClusterPhysics : public Physics {
 public:
  // Of communicators with this stream and these groups.
  ClusterPhysics(Cluster* cluster, size_t stream, std::vector<int> groups)
      : cluster_(*cluster), stream_(stream), groups_(std::move(groups)) {}
  double Cost(size_t bytes, int algorithm, int protocol) const override;
  double Time(size_t bytes, const Choice& choice, uint64_t call, int rank) const override;
  bool Schedule(const Call& call, const Choice& choice, uint64_t* start_ns,
                uint64_t* stop_ns) const override;

  static constexpr int kMostChannels = 8;

 private:
  Cluster& cluster_;
  const size_t stream_;
  const std::vector<int> groups_;
  mutable uint64_t calls_ = 0;
};

}  // namespace played
