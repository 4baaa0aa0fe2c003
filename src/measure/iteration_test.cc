#include "measure/iteration.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "base/stats.h"
#include "base/text.h"
#include "comm/backends/sim/cluster.h"
#include "comm/backends/sim/testing.h"
#include "dataset/import.h"

namespace diapason::measure {
namespace {

std::string TemporaryPath(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) /
          Format("{}_{}", static_cast<int>(getpid()), name))
      .string();
}

struct Ran {
  std::vector<Result<IterationTimes>> ranks;
  const IterationTimes& times() const { return ranks[0].value(); }
};

// Ranks as threads. `spec_of` may give each another spec.
Ran RunRanks(const std::string& cluster, int ranks, uint64_t seed,
             const std::function<IterationSpec(int rank)>& spec_of, bool choose = false) {
  Ran ran;
  ran.ranks.resize(static_cast<size_t>(ranks), Internal("did not run"));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions options = comm::sim::SimulatedRank(rank, ranks, cluster);
      options.seed = seed;
      options.choose = choose;
      Result<std::unique_ptr<Group>> group = Group::Create(options);
      auto& result = ran.ranks[static_cast<size_t>(rank)];
      if (!group.ok()) {
        result = group.status();
        return;
      }
      result = RunIterations(group.value().get(), spec_of(rank));
      // Nobody leaves before all are through.
      static_cast<void>(group.value()->Barrier());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ran;
}

IterationTimes RunFine(const std::string& cluster, int ranks, uint64_t seed,
                       const IterationSpec& spec) {
  const Ran ran = RunRanks(cluster, ranks, seed, [&](int) { return spec; });
  for (const auto& result : ran.ranks) {
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result.ok()) return {};
    // The slowest rank's times are everybody's.
    EXPECT_EQ(result.value().steps, ran.times().steps);
  }
  return ran.times();
}

// The shipped cluster without noise, so that sums come out exactly.
class QuietCluster {
 public:
  explicit QuietCluster(const std::string& more = "") : path_(TemporaryPath("quiet.toml")) {
    std::string text(comm::sim::ShippedText("h100x8").value());
    for (const std::string key : {"sigma = ", "rank_sigma = ", "spike_share = "}) {
      for (size_t at = text.find("\n" + key); at != std::string::npos;
           at = text.find("\n" + key, at + 1)) {
        const size_t value = at + 1 + key.size();
        text.replace(value, text.find_first_of(" \n#", value) - value, "0.0");
      }
    }
    std::ofstream(path_) << text << more;
  }
  ~QuietCluster() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

IterationSpec Small(const std::string& preset) {
  IterationSpec spec = PresetSpec(preset, {.parts = 3, .bytes = 1 << 18, .host = false}).value();
  spec.steps = 6;
  spec.warmups = 1;
  spec.compute = 1e-3;
  return spec;
}

TEST(Iterations, EveryPresetRuns) {
  for (const std::string& name : PresetNames()) {
    for (const bool overlap : {true, false}) {
      IterationSpec spec = Small(name);
      spec.overlap = overlap;
      const IterationTimes times = RunFine("h100x8", 4, 1, spec);
      ASSERT_EQ(times.steps.size(), 6U) << name;
      ASSERT_EQ(times.compute.size(), 6U);
      ASSERT_EQ(times.communication.size(), 6U);
      EXPECT_NEAR(Median(times.compute), 1e-3, 2e-4) << name;
      EXPECT_GT(Median(times.communication), 1e-5);
      EXPECT_GT(Median(times.steps), Median(times.compute));
      EXPECT_GT(ExposedSeconds(times), 0);
      EXPECT_GE(OverlapEfficiency(times), 0);
      EXPECT_LE(OverlapEfficiency(times), 1);
    }
  }
}

TEST(Iterations, OverlapHidesCommunication) {
  const QuietCluster cluster;
  for (const std::string name : {"ddp", "fsdp", "moe"}) {
    IterationSpec spec = Small(name);
    const IterationTimes beside = RunFine(cluster.path(), 8, 1, spec);
    const double sum = Median(beside.compute) + Median(beside.communication);
    EXPECT_LT(Median(beside.steps), 0.97 * sum) << name;
    EXPECT_GT(OverlapEfficiency(beside), 0.1) << name;
    spec.overlap = false;
    const IterationTimes apart = RunFine(cluster.path(), 8, 1, spec);
    EXPECT_LT(Median(beside.steps), Median(apart.steps)) << name;
  }
}

TEST(Iterations, WithoutOverlapAStepIsTheSum) {
  const QuietCluster cluster;
  for (const std::string& name : PresetNames()) {
    IterationSpec spec = Small(name);
    spec.overlap = false;
    const IterationTimes times = RunFine(cluster.path(), 8, 1, spec);
    for (size_t i = 0; i < times.steps.size(); ++i) {
      EXPECT_NEAR(times.compute[i], 1e-3, 1e-12);
      EXPECT_NEAR(times.steps[i], times.compute[i] + times.communication[i], 1e-9) << name;
    }
    EXPECT_NEAR(OverlapEfficiency(times), 0, 1e-3);
  }
}

TEST(Iterations, WhatIsWaitedForIsNotHidden) {
  const QuietCluster cluster;
  const IterationTimes times = RunFine(cluster.path(), 8, 1, Small("tp"));
  for (size_t i = 0; i < times.steps.size(); ++i) {
    EXPECT_NEAR(times.steps[i], times.compute[i] + times.communication[i], 1e-9);
  }
}

TEST(Iterations, TheSlowestRankCounts) {
  const QuietCluster cluster("\n[[straggler]]\nranks = [1]\nfactor = 3\n");
  const IterationTimes times = RunFine(cluster.path(), 4, 1, Small("ddp"));
  for (const double seconds : times.compute) EXPECT_NEAR(seconds, 3e-3, 1e-12);
}

TEST(Iterations, TheSeedDecidesAndNothingElse) {
  const IterationSpec spec = Small("moe");
  const IterationTimes once = RunFine("h100x8", 8, 7, spec);
  const IterationTimes again = RunFine("h100x8", 8, 7, spec);
  EXPECT_EQ(once.steps, again.steps);
  EXPECT_EQ(once.compute, again.compute);
  EXPECT_EQ(once.communication, again.communication);
  EXPECT_NE(once.steps, RunFine("h100x8", 8, 8, spec).steps);
}

TEST(Iterations, OneRankAndNoCompute) {
  IterationSpec spec = Small("ddp");
  spec.compute = 0;
  const IterationTimes times = RunFine("h100x8", 1, 1, spec);
  EXPECT_EQ(Median(times.compute), 0);
  EXPECT_GT(Median(times.steps), 0);
}

TEST(Iterations, ConfigurationsReachTheirBuckets) {
  const QuietCluster cluster;
  IterationSpec spec = Small("ddp");
  const IterationTimes own = RunFine(cluster.path(), 8, 1, spec);
  for (Bucket& bucket : spec.buckets) bucket.config = {1, 2, 1};  // ring, simple, one channel
  const Ran chosen = RunRanks(
      cluster.path(), 8, 1, [&](int) { return spec; }, true);
  ASSERT_TRUE(chosen.ranks[0].ok()) << chosen.ranks[0].status().message();
  EXPECT_NE(Median(chosen.times().communication), Median(own.communication));
  const Ran refused = RunRanks(
      cluster.path(), 8, 1, [&](int) { return spec; }, false);
  for (const auto& result : refused.ranks) {
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.status().message().find("choose"), std::string::npos);
  }
}

TEST(Iterations, RanksThatDisagreeAllStop) {
  const Ran different = RunRanks("h100x8", 4, 1, [](int rank) {
    IterationSpec spec = Small("ddp");
    spec.steps += rank == 2 ? 1 : 0;
    return spec;
  });
  for (const auto& result : different.ranks) EXPECT_FALSE(result.ok());
  EXPECT_EQ(different.ranks[0].status().message(), "rank 2 has been asked for another iteration");
  const Ran broken = RunRanks("h100x8", 4, 1, [](int rank) {
    IterationSpec spec = Small("ddp");
    if (rank == 3) spec.steps = 0;
    return spec;
  });
  EXPECT_EQ(broken.ranks[0].status().message(),
            "rank 3 cannot take part; its own message says why");
  EXPECT_NE(broken.ranks[3].status().message().find("number of steps"), std::string::npos);
}

TEST(Iterations, FiguresOfTimes) {
  IterationTimes times;
  EXPECT_EQ(ExposedSeconds(times), 0);
  EXPECT_EQ(OverlapEfficiency(times), 0);
  times = {{7, 8, 9}, {5, 6, 7}, {4, 4, 4}};
  EXPECT_DOUBLE_EQ(ExposedSeconds(times), 2);
  EXPECT_DOUBLE_EQ(OverlapEfficiency(times), 0.5);
  times = {{5, 5}, {6, 6}, {1, 1}};
  EXPECT_EQ(ExposedSeconds(times), 0);
  EXPECT_EQ(OverlapEfficiency(times), 1);
  times = {{9}, {1}, {2}};
  EXPECT_EQ(OverlapEfficiency(times), 0);
}

std::string Content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Rewards, LinesAreAppendedWhole) {
  const std::string path = TemporaryPath("rewards.csv");
  IterationSpec spec = Small("fsdp");
  spec.buckets[2].bytes = 1 << 20;
  IterationTimes times{{1e-3, 0.0025}, {}, {}};
  ASSERT_TRUE(AppendRewards(path, spec, times, 2, 16).ok());
  EXPECT_EQ(Content(path), "allgather,1048576,2,16,1.000000\nallgather,1048576,2,16,2.500000\n");
  std::ofstream(path) << "cut off";
  times.steps = {0.5};
  spec.buckets[2].operation = Operation::kAllToAll;
  ASSERT_TRUE(AppendRewards(path, spec, times, 1, 1).ok());
  EXPECT_EQ(Content(path), "cut off\nallgather,262144,1,1,500.000000\n");
  spec.buckets = {spec.buckets[2]};
  ASSERT_TRUE(AppendRewards(path, spec, times, 1, 1).ok());
  EXPECT_EQ(Content(path),
            "cut off\nallgather,262144,1,1,500.000000\nalltoall,1048576,1,1,500.000000\n");
  std::filesystem::remove(path);
  const std::string played = path + ".simulated";
  ASSERT_TRUE(AppendRewards(played, spec, times, 1, 1, true).ok());
  const std::string marked = ReadFile(played, 1 << 20).value();
  EXPECT_TRUE(marked.starts_with(std::string(dataset::kSimulatedMark) + "\n")) << marked;
  EXPECT_TRUE(marked.ends_with(std::string(dataset::kSimulatedEnd) + "\n")) << marked;
  std::filesystem::remove(played);
  EXPECT_FALSE(AppendRewards(testing::TempDir(), spec, times, 1, 1).ok());
  EXPECT_FALSE(AppendRewards("/nowhere/at/all.csv", spec, times, 1, 1).ok());
  EXPECT_FALSE(AppendRewards("/dev/null", spec, times, 1, 1).ok());
}

}  // namespace
}  // namespace diapason::measure
