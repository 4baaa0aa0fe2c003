#include "comm/backends/sim/timeline.h"

#include <gtest/gtest.h>

namespace diapason::comm::sim {
namespace {

// Ten channels take a tenth of the GPU; a collective beside compute takes half as long again.
const Compute kGpu{100, 1, 0.5};

TEST(Timeline, WaitingMovesTheClockToTheEnd) {
  Timeline timeline;
  const auto item = timeline.Start(0);
  Timeline::Know(item, 2, 3, 10);
  EXPECT_EQ(timeline.now(), 0);
  timeline.Finish(item);
  EXPECT_EQ(timeline.now(), 5);
  EXPECT_EQ(item->end - item->started, 5);
  timeline.Finish(item);
  EXPECT_EQ(timeline.now(), 5);
}

TEST(Timeline, OneCommunicatorIsAStreamTwoAreNot) {
  Timeline timeline;
  const auto first = timeline.Start(0);
  const auto second = timeline.Start(0);
  const auto other = timeline.Start(1);
  Timeline::Know(first, 0, 3, 1);
  Timeline::Know(second, 1, 4, 1);
  Timeline::Know(other, 1, 4, 1);
  timeline.Finish(second);
  timeline.Finish(other);
  EXPECT_EQ(first->end, 3);
  EXPECT_EQ(second->end, 7);
  EXPECT_EQ(other->end, 5);
  EXPECT_EQ(timeline.now(), 7);
}

TEST(Timeline, ComputeAloneTakesItsTime) {
  Timeline timeline;
  timeline.Work(4, kGpu);
  EXPECT_EQ(timeline.now(), 4);
  timeline.Work(0, kGpu);
  EXPECT_EQ(timeline.now(), 4);
}

TEST(Timeline, ComputeAndACollectiveSlowEachOther) {
  Timeline timeline;
  const auto item = timeline.Start(0);
  Timeline::Know(item, 0, 2, 10);
  timeline.Work(10, kGpu);
  // The collective takes 3 instead of 2, and leaves 0.9 of the GPU meanwhile: 3 * 0.9 = 2.7 of the
  // 10 are done by then.
  EXPECT_DOUBLE_EQ(timeline.now(), 3 + 7.3);
  timeline.Finish(item);
  EXPECT_DOUBLE_EQ(item->end, 3);
  EXPECT_DOUBLE_EQ(timeline.now(), 10.3);
}

TEST(Timeline, ACollectiveThatBeginsLaterSlowsOnlyFromThenOn) {
  Timeline timeline;
  const auto item = timeline.Start(0);
  Timeline::Know(item, 4, 100, 50);
  timeline.Work(5, kGpu);
  // 4 alone, then 1 at half speed.
  EXPECT_DOUBLE_EQ(timeline.now(), 6);
  timeline.Finish(item);
  // 2 of its time beside compute did 2 / 1.5 of its work.
  EXPECT_DOUBLE_EQ(item->end, 6 + 100 - 2 / 1.5);
}

TEST(Timeline, CollectivesOfTwoCommunicatorsAddUpAndComputeAlwaysMoves) {
  Timeline timeline;
  const auto one = timeline.Start(0);
  const auto two = timeline.Start(1);
  Timeline::Know(one, 0, 1000, 20);
  Timeline::Know(two, 0, 1000, 30);
  timeline.Work(1, kGpu);
  EXPECT_DOUBLE_EQ(timeline.now(), 2);
  const auto huge = timeline.Start(2);
  Timeline::Know(huge, 2, 1000, 500);
  timeline.Work(1, kGpu);
  EXPECT_DOUBLE_EQ(timeline.now(), 2 + 1 / (1 - Timeline::kMostShare));
}

TEST(Timeline, TimeWithoutComputeIsFullSpeed) {
  Timeline timeline;
  const auto item = timeline.Start(0);
  Timeline::Know(item, 0, 10, 10);
  timeline.MoveTo(4);
  EXPECT_EQ(timeline.unfinished(), 1u);
  timeline.Work(0.9, kGpu);
  EXPECT_DOUBLE_EQ(timeline.now(), 5);
  timeline.Finish(item);
  EXPECT_DOUBLE_EQ(item->end, 5 + 6 - 1 / 1.5);
  EXPECT_EQ(timeline.unfinished(), 0u);
}

TEST(Timeline, AQueueDrainsBesideCompute) {
  Timeline timeline;
  std::vector<Timeline::Handle> items;
  for (int i = 0; i < 100; ++i) {
    items.push_back(timeline.Start(0));
    Timeline::Know(items.back(), 0, 0.01, 10);
  }
  timeline.Work(2, kGpu);
  // Together 1.5 beside compute, at 0.9 of its speed.
  EXPECT_NEAR(items.back()->end, 1.5, 1e-9);
  EXPECT_NEAR(timeline.now(), 2 + 1.5 * 0.1, 1e-9);
}

TEST(Timeline, ADroppedStreamIsForgotten) {
  Timeline timeline;
  const auto item = timeline.Start(0);
  timeline.Drop(0);
  timeline.Finish(item);
  timeline.Work(1, kGpu);
  EXPECT_EQ(timeline.now(), 1);
}

}  // namespace
}  // namespace diapason::comm::sim
