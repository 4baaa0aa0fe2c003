#include "comm/tally.h"

#include <gtest/gtest.h>

namespace diapason::comm {
namespace {

TEST(CallCounts, BytesAreCountedAsNcclTestsDoes) {
  const float buffer[1] = {};
  float out[1] = {};
  EXPECT_EQ(CallBytes(AllReduceCall(buffer, out, 10, DataType::kF32), 4), 40U);
  EXPECT_EQ(CallBytes(AllGatherCall(buffer, out, 10, DataType::kF32), 4), 160U);
  EXPECT_EQ(CallBytes(ReduceScatterCall(buffer, out, 10, DataType::kBf16), 4), 80U);
  EXPECT_EQ(CallBytes(AllToAllCall(buffer, out, 10, DataType::kI8), 4), 40U);
  EXPECT_EQ(CallBytes(BroadcastCall(buffer, out, 10, DataType::kF64, 0), 4), 80U);
  EXPECT_EQ(CallBytes(BarrierCall(), 4), 0U);
  const Tensor tensors[] = {{buffer, out, 3}, {buffer, out, 0}, {buffer, out, 4}};
  EXPECT_EQ(CallBytes(CoalescedAllReduceCall(tensors, DataType::kF32), 4), 28U);
}

TEST(CallCounts, BandwidthsFollowFromBytesAndTime) {
  const TickClock& clock = TickClock::Get();
  CallCounts tally(4, clock);
  tally.Count(Operation::kAllReduce, DataType::kF32, 1, 1000, clock.Ticks(0.5));
  tally.Count(Operation::kBroadcast, DataType::kF32, 2, 1000, clock.Ticks(1.5));
  tally.CountUntimed(500);
  const Statistics statistics = tally.Get(2000, false);
  EXPECT_EQ(statistics.operations, 3U);
  EXPECT_EQ(statistics.bytes, 2500U);
  EXPECT_EQ(statistics.untimed, 1U);
  EXPECT_NEAR(statistics.seconds, 2.0, 1e-6);
  EXPECT_NEAR(statistics.algbw, 1000, 1e-3);
  EXPECT_NEAR(statistics.busbw, 1250, 1e-3);  // (1.5 x 1000 + 1000) bytes in 2 s
  EXPECT_NEAR(statistics.peak_share, 0.625, 1e-6);
  EXPECT_EQ(statistics.slowest, "broadcast number 2, 1000 bytes f32, 1.5e+03 ms");
  tally.Reset();
  EXPECT_EQ(tally.Get(0, false).operations, 0U);
  EXPECT_EQ(tally.Get(0, false).slowest, "");
}

TEST(CallCounts, SimulatedTimesSaySo) {
  const TickClock& clock = TickClock::Get();
  CallCounts tally(2, clock);
  tally.Count(Operation::kAllReduce, DataType::kF32, 1, 4096, clock.Ticks(0.001));
  const Statistics statistics = tally.Get(0, true);
  EXPECT_TRUE(statistics.simulated);
  EXPECT_NE(statistics.slowest.find("(simulated)"), std::string::npos);
  EXPECT_EQ(statistics.peak_share, 0);
}

}  // namespace
}  // namespace diapason::comm
