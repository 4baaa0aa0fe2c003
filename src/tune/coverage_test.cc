#include "tune/coverage.h"

#include <gtest/gtest.h>

namespace diapason::tune {
namespace {

const Config kRingOne{kRing, kSimple, 1, 0};
const Config kTreeTwo{kTree, kSimple, 2, 0};

Stop At(uint64_t bytes, const Config& config, double own = 1, double library = 2, double ring = 3,
        double tree = 3) {
  Stop stop;
  stop.bytes = bytes;
  stop.config = config;
  stop.support = config.IsDefault() ? Support::kLeft : Support::kVerified;
  stop.times = {{{}, library}, {kRingOne, ring}, {kTreeTwo, tree}};
  for (auto& [one, seconds] : stop.times) {
    if (one == config) seconds = own;
  }
  return stop;
}

// Every size is in exactly one range.
void ExpectNoHoles(const std::vector<Range>& ranges, uint64_t first, uint64_t last) {
  ASSERT_FALSE(ranges.empty());
  EXPECT_EQ(ranges.front().first, first);
  EXPECT_EQ(ranges.back().last, last);
  for (size_t i = 1; i < ranges.size(); ++i) EXPECT_EQ(ranges[i].first, ranges[i - 1].last + 1);
  for (const Range& range : ranges) EXPECT_LE(range.first, range.last);
}

TEST(Cover, NeighboursOfOneConfigurationAreOneRange) {
  const std::vector<Range> ranges =
      Cover({At(1024, kRingOne), At(2048, kRingOne), At(4096, kRingOne)}, {});
  ExpectNoHoles(ranges, 1024, 4096);
  ASSERT_EQ(ranges.size(), 1U);
  EXPECT_EQ(ranges[0].support, Support::kBetween);
  EXPECT_EQ(ranges[0].stops.size(), 3U);
}

TEST(Cover, AGapThatIsTooWideIsNotSpanned) {
  const std::vector<Range> ranges = Cover({At(1024, kRingOne), At(4096, kRingOne)}, {});
  ExpectNoHoles(ranges, 1024, 4096);
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_TRUE(ranges[1].config.IsDefault());
  EXPECT_FALSE(ranges[1].why.empty());
  EXPECT_LT(ranges[0].last, 2048U);
  EXPECT_GT(ranges[2].first, 2048U);
}

TEST(Cover, TheBorderIsWhereBothAreEquallyFast) {
  // Ring leads by a factor of 4 at 1 KiB, tree by 2 at 2 KiB: two thirds of the way.
  const std::vector<Range> ranges =
      Cover({At(1024, kRingOne, 1, 9, 1, 4), At(2048, kTreeTwo, 1, 9, 2, 1)}, {});
  ExpectNoHoles(ranges, 1024, 2048);
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_NEAR(static_cast<double>(ranges[1].first), 1024 * 1.5874, 2);
}

TEST(Cover, BesideTheLibraryARowGivesWay) {
  // By the times the row would reach almost to 2 KiB.
  const std::vector<Range> ranges = Cover({At(1024, kRingOne, 1, 8), At(2048, {}, 1, 1, 1.01)}, {});
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_LE(ranges[0].last, 1218U);
  const std::vector<Range> other = Cover({At(1024, {}, 1, 1, 1.01), At(2048, kRingOne, 1, 8)}, {});
  ASSERT_EQ(other.size(), 2U);
  EXPECT_GE(other[1].first, 1722U);
}

TEST(Cover, ADipCutsARange) {
  const std::vector<Range> ranges =
      Cover({At(1024, kRingOne), At(1440, {}, 1, 1, 2), At(2048, kRingOne)}, {});
  ExpectNoHoles(ranges, 1024, 2048);
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_TRUE(ranges[1].config.IsDefault());
  EXPECT_LE(ranges[1].first, 1440U);
  EXPECT_GE(ranges[1].last, 1440U);
}

TEST(Cover, TheEdgeReachesBeyondTheOutermost) {
  const std::vector<Range> ranges = Cover({At(1000, kRingOne), At(2000, kRingOne)}, {.edge = 1.5});
  ExpectNoHoles(ranges, 666, 3000);
}

TEST(SizesBetween, LeaveNoGapThatIsTooWide) {
  EXPECT_EQ(SizesBetween(1024, 2048), (std::vector<uint64_t>{1440}));
  EXPECT_EQ(SizesBetween(1024, 4096), (std::vector<uint64_t>{2048}));
  EXPECT_EQ(SizesBetween(1024, 8192), (std::vector<uint64_t>{2048, 4096}));
  EXPECT_TRUE(SizesBetween(1024, 1100).empty());
  EXPECT_TRUE(SizesBetween(1, 2).empty());
  EXPECT_TRUE(SizesBetween(0, 4096).empty());
  for (const double ratio : {1.2, 2.0, 3.0, 7.0, 100.0, 5000.0}) {
    uint64_t last = 65536;
    const auto high = static_cast<uint64_t>(65536 * ratio);
    for (const uint64_t size : SizesBetween(last, high)) {
      EXPECT_LE(static_cast<double>(size) / static_cast<double>(last), kWidestGap);
      EXPECT_GT(size, last);
      last = size;
    }
    EXPECT_LE(static_cast<double>(high) / static_cast<double>(last), kWidestGap) << ratio;
  }
}

}  // namespace
}  // namespace diapason::tune
