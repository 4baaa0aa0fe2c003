#include "cluster.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace played {
namespace {

constexpr int64_t kLaunchNs = 4000;      // of the host, for a kernel
constexpr int64_t kCallNs = 8000;        // and for a collective
constexpr int64_t kLatencyNs = 3000;     // from the launch to the start
constexpr int64_t kAfterWaitNs = 10000;  // until the host goes on
constexpr double kComputeNoise = 0.03;
constexpr double kCollectiveNoise = 0.08;
constexpr double kSlowdown = 0.04;  // of compute, by each channel beside it
// GPUs have clocks of their own.
constexpr uint64_t kGpuEpoch = 77'000'000'000'000;

int64_t Ns(double microseconds) { return static_cast<int64_t>(microseconds * 1000); }

}  // namespace

Cluster::Cluster(const ClusterOptions& options)
    : options_(options), ranks_(static_cast<size_t>(options.ranks)) {}

double Cluster::Noise(uint64_t n) const {
  const diapason::CounterRandom random(options_.seed, 1);
  return std::exp(kCollectiveNoise * options_.noise * random.Normal(n));
}

int64_t Cluster::EndOf(const Rank& rank, int64_t start, double nanoseconds) {
  // In the order of time: streams overlap, but rarely, so that the first one found counts.
  int64_t now = start;
  double left = nanoseconds;
  for (const Busy& busy : rank.busy) {
    if (busy.when.stop <= now) continue;
    const auto alone = static_cast<double>(std::max<int64_t>(0, busy.when.start - now));
    if (left <= alone) break;
    left -= alone;
    now = std::max(now, busy.when.start);
    const double slower = 1 + kSlowdown * busy.channels;
    const auto together = static_cast<double>(busy.when.stop - now);
    if (left * slower <= together) return now + static_cast<int64_t>(left * slower);
    left -= together / slower;
    now = busy.when.stop;
  }
  return now + static_cast<int64_t>(left);
}

void Cluster::Compute(double microseconds) {
  const uint64_t n = computes_++;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    rank.host += kLaunchNs;
    const diapason::CounterRandom random(options_.seed, 100 + r);
    double length =
        microseconds * 1000 * std::exp(kComputeNoise * options_.noise * random.Normal(n));
    if (r + 1 == ranks_.size()) length *= options_.slow_rank;
    const int64_t start = std::max(rank.compute, rank.host + kLatencyNs);
    std::erase_if(rank.busy, [&](const Busy& busy) { return busy.when.stop <= start; });
    rank.compute = EndOf(rank, start, length);
    if (static_cast<int>(r) == options_.self) computed_.push_back({start, rank.compute});
  }
}

void Cluster::HostWork(double microseconds) {
  for (Rank& rank : ranks_) rank.host += Ns(microseconds);
}

void Cluster::WaitFor(size_t stream) {
  for (Rank& rank : ranks_) {
    if (stream < rank.streams.size()) rank.compute = std::max(rank.compute, rank.streams[stream]);
  }
}

void Cluster::Synchronize() {
  for (Rank& rank : ranks_) rank.host = std::max(rank.host, rank.compute) + kAfterWaitNs;
}

Interval Cluster::Collective(size_t stream, const std::vector<int>& groups, double microseconds,
                             int channels) {
  ++collectives_;
  std::map<int, int64_t> last;
  std::vector<int64_t> starts(ranks_.size());
  for (size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    rank.streams.resize(std::max(rank.streams.size(), stream + 1));
    rank.host += kCallNs;
    starts[r] = std::max({rank.compute, rank.streams[stream], rank.host + kLatencyNs});
    last[groups[r]] = std::max(last[groups[r]], starts[r]);
  }
  Interval own;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    const Interval when{starts[r], last[groups[r]] + Ns(microseconds)};
    rank.streams[stream] = when.stop;
    rank.busy.push_back({when, channels});
    std::stable_sort(rank.busy.begin(), rank.busy.end(),
                     [](const Busy& a, const Busy& b) { return a.when.start < b.when.start; });
    if (static_cast<int>(r) == options_.self) own = when;
  }
  ran_.push_back(own);
  return own;
}

double ClusterPhysics::Cost(size_t bytes, int algorithm, int protocol) const {
  return LabPhysics().Cost(bytes, algorithm, protocol);
}

double ClusterPhysics::Time(size_t bytes, const Choice& choice, uint64_t, int) const {
  const double kib = static_cast<double>(bytes) / 1024;
  const bool tree = choice.algorithm == 0;
  const bool ll = choice.protocol == 0;
  const double latency = tree ? (ll ? 40 : 70) : (ll ? 90 : 140);
  const double per_kib = ll ? (tree ? 1.6 : 1.4) : (tree ? 0.35 : 0.28);
  const double fewer =
      static_cast<double>(kMostChannels) / std::clamp(choice.channels, 1, kMostChannels);
  return latency + per_kib * kib * (0.8 + 0.2 * fewer);
}

bool ClusterPhysics::Schedule(const Call& call, const Choice& choice, uint64_t* start_ns,
                              uint64_t* stop_ns) const {
  const double half = call.collective == kAllReduce ? 1 : 0.6;
  const uint64_t n = stream_ << 40 | calls_++;
  const double time = half * Time(call.bytes, choice, n, 0) * cluster_.Noise(n);
  const Interval when = cluster_.Collective(stream_, groups_, time, choice.channels);
  *start_ns = kGpuEpoch + static_cast<uint64_t>(when.start);
  *stop_ns = kGpuEpoch + static_cast<uint64_t>(when.stop);
  return true;
}

}  // namespace played
