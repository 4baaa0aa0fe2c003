// How fast the simulated cluster is: one estimate, and thousands of ranks as threads.
//
// Bar: an estimate of a 4096-rank allreduce takes less than 1 ms.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/stats.h"
#include "base/text.h"
#include "comm/backend.h"
#include "comm/backends/sim/library.h"

namespace diapason::comm {
namespace {

using std::chrono::steady_clock;

constexpr double kBarSeconds = 1e-3;
constexpr int kRanks = 4096;
constexpr int kCalls = 20;
constexpr int kSamples = 200;
constexpr int kBatch = 100;

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

// One estimate, in seconds: samples of batches over sizes from 1 KiB to 1 GiB.
std::vector<double> EstimateSamples(const sim::Cluster& cluster, int ranks) {
  std::vector<double> samples;
  double sum = 0;
  for (int sample = 0; sample < kSamples; ++sample) {
    const auto start = steady_clock::now();
    for (int i = 0; i < kBatch; ++i) {
      const uint64_t bytes = uint64_t{1024} << (i % 21);
      const auto cost = sim::Estimate(cluster, ranks, Collective::kAllReduce, bytes, {});
      if (cost.ok()) sum += cost.value().seconds;
    }
    samples.push_back(SecondsSince(start) / kBatch);
  }
  if (!(sum > 0)) std::printf("the estimates failed\n");
  return samples;
}

// kRanks threads make kCalls allreduces; false when something went wrong.
bool RunThreads(double* meet_seconds, double* call_seconds, double* virtual_seconds) {
  std::vector<std::thread> threads;
  std::vector<double> ends(kRanks, -1);
  std::vector<steady_clock::time_point> met(kRanks);
  const auto start = steady_clock::now();
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([rank, &ends, &met] {
      GroupOptions options;
      options.cluster = "h100x8x512";
      Start begin;
      begin.place.rank = rank;
      begin.place.size = kRanks;
      begin.timeout = std::chrono::minutes(5);
      begin.options = &options;
      auto comm = FindBackend("sim").value()->Create(begin);
      if (!comm.ok()) return;
      met[static_cast<size_t>(rank)] = steady_clock::now();
      const Deadline deadline = steady_clock::now() + begin.timeout;
      for (int call = 0; call < kCalls; ++call) {
        float value = 1;
        if (!comm.value()->Run(AllReduceCall(&value, &value, 1, DataType::kF32), deadline).ok() ||
            value != kRanks) {
          return;
        }
      }
      ends[static_cast<size_t>(rank)] = comm.value()->Now();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double all = SecondsSince(start);
  for (const double end : ends) {
    if (end < 0) return false;
    *virtual_seconds = std::max(*virtual_seconds, end);
  }
  steady_clock::time_point last = start;
  for (const auto& time : met) last = std::max(last, time);
  *meet_seconds = std::chrono::duration<double>(last - start).count();
  *call_seconds = all - *meet_seconds;
  return true;
}

int Main() {
  const Result<sim::Cluster> cluster = sim::LoadCluster("h100x8x512");
  if (!cluster.ok()) {
    std::fprintf(stderr, "bench_sim: %s\n", cluster.status().message().c_str());
    return 1;
  }
  bool met = true;
  std::printf("estimate of an allreduce, library's choice included (%d samples of %d)\n", kSamples,
              kBatch);
  for (const int ranks : {8, 256, kRanks}) {
    const std::vector<double> samples = EstimateSamples(cluster.value(), ranks);
    const Interval interval = MedianInterval95(samples);
    const double median = Median(samples);
    std::printf("  %4d ranks  median %.3f us  (95 %%: %.3f to %.3f us)\n", ranks, median * 1e6,
                interval.low * 1e6, interval.high * 1e6);
    if (ranks == kRanks) met = interval.high < kBarSeconds;
  }
  std::printf("bar: 4096 ranks below 1 ms: %s\n", met ? "met" : "NOT met");

  std::vector<double> meets;
  std::vector<double> calls;
  double virtual_seconds = 0;
  for (int run = 0; run < 3; ++run) {
    double meet = 0;
    double call = 0;
    if (!RunThreads(&meet, &call, &virtual_seconds)) {
      std::printf("%d threads: a rank failed\n", kRanks);
      return 1;
    }
    meets.push_back(meet);
    calls.push_back(call);
  }
  std::printf(
      "%d threads x %d allreduces, end to end (median of 3 runs): %.2f s to meet, %.2f s for "
      "the calls; %.2f ms of simulated time\n",
      kRanks, kCalls, Median(meets), Median(calls), virtual_seconds * 1e3);
  return met ? 0 : 1;
}

}  // namespace
}  // namespace diapason::comm

int main() { return diapason::comm::Main(); }
