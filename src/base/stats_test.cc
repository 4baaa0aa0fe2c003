#include "base/stats.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(StatsTest, Means) {
  EXPECT_EQ(Mean({1, 2, 6}), 3);
  EXPECT_DOUBLE_EQ(GeometricMean({1, 4, 16}), 4);
  EXPECT_EQ(GeometricMean({}), 1);
}

TEST(StatsTest, TheRobustDeviationIgnoresOutliers) {
  EXPECT_DOUBLE_EQ(RobustDeviation({1, 2, 3, 4, 5}), kMadToDeviation);
  EXPECT_DOUBLE_EQ(RobustDeviation({1, 2, 3, 4, 1e9}), kMadToDeviation);
  EXPECT_EQ(RobustDeviation({7}), 0);
  EXPECT_EQ(RobustDeviation({}), 0);
}

TEST(StatsTest, TheStandardDeviationIsThatOfASample) {
  EXPECT_DOUBLE_EQ(StandardDeviation({2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7));
}

}  // namespace
}  // namespace diapason
