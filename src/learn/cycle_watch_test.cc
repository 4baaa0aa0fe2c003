#include "learn/cycle_watch.h"

#include <gtest/gtest.h>

namespace diapason::learn {
namespace {

void Feed(int calls, double cycle, double gpu, int unended_every, CycleWatch* watch) {
  for (int i = 1; i <= calls; ++i) {
    watch->AddCycle(cycle, unended_every == 0 || i % unended_every != 0);
    watch->AddGpuTime(gpu);
  }
}

TEST(CycleWatch, NeedsSixteenCycles) {
  CycleWatch watch;
  Feed(15, 1e-3, 8e-4, 0, &watch);
  EXPECT_FALSE(watch.IsReward());
  EXPECT_NE(watch.Trouble().find("too few calls"), std::string::npos);
  Feed(1, 1e-3, 8e-4, 0, &watch);
  EXPECT_TRUE(watch.IsReward());
}

TEST(CycleWatch, AProgramThatLaunchesAheadIsNotUsed) {
  CycleWatch watch;
  Feed(200, 1e-3, 8e-4, 8, &watch);
  EXPECT_FALSE(watch.IsReward());
  EXPECT_EQ(watch.Trouble(), "the program does not wait for its calls");
  EXPECT_FALSE(watch.GivenUp());
  Feed(400, 1e-3, 8e-4, 8, &watch);
  EXPECT_TRUE(watch.GivenUp());
  Feed(64, 1e-3, 8e-4, 0, &watch);
  EXPECT_FALSE(watch.GivenUp()) << "it waits now";
}

TEST(CycleWatch, ASmallCallIsNotUsed) {
  CycleWatch watch;
  Feed(200, 1e-3, 2e-4, 0, &watch);
  EXPECT_FALSE(watch.IsReward());
  EXPECT_EQ(watch.Trouble(), "the calls are a small part of the time between them");
}

TEST(CycleWatch, SingleCallsThatWereNotWaitedForChangeNothing) {
  CycleWatch watch;
  Feed(64, 1e-3, 8e-4, 0, &watch);
  Feed(64, 1e-3, 2e-4, 10, &watch);
  EXPECT_TRUE(watch.IsReward());
  Feed(64, 1e-3, 2e-4, 4, &watch);
  EXPECT_FALSE(watch.IsReward());
}

TEST(CycleWatch, WithoutGpuTimesNothingIsKnown) {
  CycleWatch watch;
  for (int i = 0; i < 100; ++i) watch.AddCycle(1e-3, true);
  EXPECT_FALSE(watch.IsReward());
}

}  // namespace
}  // namespace diapason::learn
