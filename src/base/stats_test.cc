#include "base/stats.h"

#include <gtest/gtest.h>

namespace diapason {
namespace {

TEST(StatsTest, QuantilesInterpolate) {
  EXPECT_EQ(Quantile({3, 1, 2}, 0), 1);
  EXPECT_EQ(Quantile({3, 1, 2}, 1), 3);
  EXPECT_EQ(Quantile({3, 1}, 0.25), 1.5);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(Median({7}), 7);
}

TEST(StatsTest, LowerMedianIsASample) {
  EXPECT_EQ(LowerMedian({7}), 7);
  EXPECT_EQ(LowerMedian({9, 1}), 1);
  EXPECT_EQ(LowerMedian({9, 1, 5}), 5);
  EXPECT_EQ(LowerMedian({9, 1, 5, 6}), 5);
}

TEST(StatsTest, MedianIntervalNarrowsWithSamples) {
  std::vector<double> few;
  std::vector<double> many;
  for (int i = 0; i < 1000; ++i) {
    if (i % 100 == 0) few.push_back(i);
    many.push_back(i);
  }
  const Interval wide = MedianInterval95(few);
  const Interval narrow = MedianInterval95(many);
  EXPECT_LE(wide.low, Median(few));
  EXPECT_GE(wide.high, Median(few));
  EXPECT_NEAR(narrow.low, 468, 2);
  EXPECT_NEAR(narrow.high, 531, 2);
  EXPECT_LT(narrow.high - narrow.low, wide.high - wide.low);
}

}  // namespace
}  // namespace diapason
