#include "plugin/profiler/gpu_clock.h"

#include <gtest/gtest.h>

namespace diapason::plugin {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(GpuClockTest, NvidiaStampsAreNanoseconds) {
  GpuClock clock;
  clock.Reset(Library::kNccl);
  EXPECT_FALSE(clock.Learning());
  clock.Observe(1000, kMs);
  clock.Observe(2000, 1000 * kMs);
  EXPECT_EQ(clock.Nanoseconds(12345), 12345u);
}

TEST(GpuClockTest, AmdStampsAreTicksOf100MegahertzUntilShownOtherwise) {
  GpuClock clock;
  clock.Reset(Library::kRccl);
  EXPECT_TRUE(clock.Learning());
  EXPECT_EQ(clock.Nanoseconds(7), 70u);
}

// A stamp at `ms` on the host's clock, of a GPU with this many ticks per microsecond.
void See(GpuClock* clock, double ticks_per_us, uint64_t ms) {
  clock->Observe(5000 + static_cast<uint64_t>(ticks_per_us * 1000 * static_cast<double>(ms)),
                 1000 * kMs + ms * kMs);
}

TEST(GpuClockTest, ARateNear100MegahertzIs100Megahertz) {
  for (const double ticks : {85.0, 100.0, 115.0}) {
    GpuClock clock;
    clock.Reset(Library::kRccl);
    See(&clock, ticks, 0);
    See(&clock, ticks, 500);
    EXPECT_EQ(clock.Nanoseconds(100), 1000u) << ticks;
  }
}

TEST(GpuClockTest, AClearlyDifferentRateIsBelieved) {
  for (const double ticks : {25.0, 1000.0}) {
    GpuClock clock;
    clock.Reset(Library::kRccl);
    See(&clock, ticks, 0);
    See(&clock, ticks, 500);
    EXPECT_NEAR(static_cast<double>(clock.Nanoseconds(1'000'000)), 1e9 / ticks, 1e9 / ticks / 100)
        << ticks;
  }
}

TEST(GpuClockTest, AShortTimeProvesNothing) {
  GpuClock clock;
  clock.Reset(Library::kRccl);
  See(&clock, 25, 0);
  See(&clock, 25, 99);
  EXPECT_EQ(clock.Nanoseconds(100), 1000u);
}

TEST(GpuClockTest, LearningEndsWhenTheRateIsSure) {
  GpuClock clock;
  clock.Reset(Library::kRccl);
  See(&clock, 25, 0);
  See(&clock, 100, 200);  // the first stamp was found late, say
  See(&clock, 25, 10'000);
  EXPECT_FALSE(clock.Learning());
  See(&clock, 100, 20'000);
  EXPECT_EQ(clock.Nanoseconds(1000), 40'000u);
}

TEST(GpuClockTest, NonsenseIsIgnored) {
  GpuClock clock;
  clock.Reset(Library::kRccl);
  clock.Observe(0, kMs);
  clock.Observe(500, 0);
  clock.Observe(500, 1000 * kMs);
  clock.Observe(400, 5000 * kMs);  // back in time
  clock.Observe(600, 10 * kMs);
  EXPECT_EQ(clock.Nanoseconds(10), 100u);
  EXPECT_EQ(clock.Nanoseconds(UINT64_MAX), uint64_t{1} << 63) << "no overflow";
}

TEST(GpuClockTest, AResetForgets) {
  GpuClock clock;
  clock.Reset(Library::kRccl);
  See(&clock, 25, 0);
  See(&clock, 25, 20'000);
  clock.Reset(Library::kRccl);
  EXPECT_TRUE(clock.Learning());
  EXPECT_EQ(clock.Nanoseconds(7), 70u);
  clock.Reset(Library::kNccl);
  EXPECT_EQ(clock.Nanoseconds(7), 7u);
}

}  // namespace
}  // namespace diapason::plugin
