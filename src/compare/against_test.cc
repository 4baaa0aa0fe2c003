#include "compare/against.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace diapason::compare {
namespace {

dataset::StoreContents LaunchOf(unsigned seed, double factor, int number) {
  std::mt19937 random(seed * 1000 + static_cast<unsigned>(number));
  std::normal_distribution<double> normal;
  dataset::StoreContents contents;
  dataset::SampleRun run;
  run.id = "run-" + std::to_string(seed) + "-" + std::to_string(number);
  run.started = seed * 1e6 + number;
  contents.runs.push_back(run);
  for (uint64_t bytes : {1024, 65536}) {
    const double level = std::exp(0.01 * normal(random)) * (bytes == 1024 ? factor : 1);
    for (int round = 0; round < 8; ++round) {
      dataset::Sample sample;
      sample.point.collective = "allreduce";
      sample.point.bytes = bytes;
      sample.point.ranks = 2;
      sample.seconds = 1e-4 * level * std::exp(0.01 * normal(random));
      contents.records.push_back({0, sample});
    }
  }
  return contents;
}

Side OldSide(int launches) {
  Side side;
  for (int i = 0; i < launches; ++i) AddRuns(LaunchOf(1, 1, i), "old", false, &side);
  return side;
}

TEST(AgainstTest, StopsWhenEveryCallIsDecided) {
  Against against(OldSide(8), {0.05, 0.05}, 20);
  EXPECT_EQ(against.Calls().size(), 2u);
  int launches = 0;
  while (!against.Done()) against.Add(LaunchOf(2, 1.3, launches++), "new");
  EXPECT_EQ(against.Why(), "every call is decided");
  EXPECT_LT(launches, 20);
  const Comparison result = against.Result();
  EXPECT_EQ(result.calls[0].verdict, Verdict::kSlower);
  EXPECT_TRUE(result.calls[0].fails);
  EXPECT_EQ(result.calls[1].verdict, Verdict::kSame);
}

TEST(AgainstTest, OneOldLaunchCannotBeComparedForEver) {
  Against against(OldSide(1), {0.001}, 20);
  int launches = 0;
  while (!against.Done()) against.Add(LaunchOf(2, 1, launches++), "new");
  EXPECT_EQ(launches, 8);
  EXPECT_EQ(against.Why(), "the old side has 1 launch only: more new ones cannot tell more");
}

TEST(AgainstTest, NeverMoreThanTheMostLaunches) {
  Against against(OldSide(8), {0.0001}, 4);
  int launches = 0;
  while (!against.Done()) against.Add(LaunchOf(2, 1, launches++), "new");
  EXPECT_EQ(launches, 4);
  EXPECT_EQ(against.Why(), "there were 4 launches, the most allowed");
}

TEST(AgainstTest, EveryLookHasItsShareOfTheErrors) {
  int wrong = 0;
  for (unsigned seed = 10; seed < 110; ++seed) {
    Side before;
    for (int i = 0; i < 5; ++i) AddRuns(LaunchOf(seed, 1, i), "old", false, &before);
    Against against(std::move(before), {0.001}, 20);
    int launches = 0;
    while (!against.Done()) against.Add(LaunchOf(seed + 500, 1, launches++), "new");
    const Comparison result = against.Result();
    wrong += result.Count(Verdict::kCannotTell) < 2 ? 1 : 0;
  }
  EXPECT_LE(wrong, 5);
}

TEST(AgainstTest, AReasonFromOutsideEndsIt) {
  Against against(OldSide(3), {}, 20);
  against.Add(LaunchOf(2, 1, 0), "new");
  EXPECT_FALSE(against.Done());
  against.Stop("the budget is spent");
  EXPECT_TRUE(against.Done());
  EXPECT_EQ(against.Why(), "the budget is spent");
}

}  // namespace
}  // namespace diapason::compare
