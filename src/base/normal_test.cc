#include "base/normal.h"

#include <gtest/gtest.h>

#include <cmath>

namespace diapason {
namespace {

TEST(NormalTest, DensityAndDistribution) {
  EXPECT_NEAR(NormalDensity(0), 0.3989423, 1e-7);
  EXPECT_NEAR(NormalDensity(-1), 0.2419707, 1e-7);
  EXPECT_DOUBLE_EQ(NormalCdf(0), 0.5);
  EXPECT_NEAR(NormalCdf(1.959964), 0.975, 1e-7);
  EXPECT_NEAR(NormalCdf(-3), 0.0013499, 1e-7);
}

TEST(NormalTest, QuantilesInvertTheDistribution) {
  EXPECT_NEAR(NormalQuantile(0.5), 0, 1e-9);
  EXPECT_NEAR(NormalQuantile(0.975), 1.959964, 1e-5);
  EXPECT_NEAR(NormalQuantile(0.025), -1.959964, 1e-5);
  EXPECT_TRUE(std::isfinite(NormalQuantile(0)));
  EXPECT_TRUE(std::isfinite(NormalQuantile(1)));
}

TEST(NormalTest, TheTailQuantileIsCloseEverywhere) {
  for (double tail = 1e-9; tail < 0.5; tail *= 1.5) {
    EXPECT_NEAR(NormalTailQuantile(tail), -NormalQuantile(tail), 0.0005) << tail;
  }
}

TEST(NormalTest, StudentsTailsAreHeavierThanNormalOnes) {
  EXPECT_NEAR(StudentQuantile(0.975, 10), 2.2281, 0.005);
  EXPECT_NEAR(StudentQuantile(0.95, 30), 1.6973, 0.002);
  EXPECT_NEAR(StudentQuantile(0.975, 1e9), 1.959964, 0.0005);
  EXPECT_TRUE(std::isfinite(StudentQuantile(1, 6)));
}

TEST(NormalTest, FewDegreesOfFreedomHaveWideIntervals) {
  EXPECT_NEAR(StudentQuantile975(1), 12.706, 0.001);
  EXPECT_NEAR(StudentQuantile975(2), 4.303, 0.001);
  EXPECT_NEAR(StudentQuantile975(7), 2.365, 0.01);
  EXPECT_LT(StudentQuantile975(2.5), StudentQuantile975(2));
  EXPECT_GT(StudentQuantile975(2.5), StudentQuantile975(3));
  EXPECT_EQ(StudentQuantile975(0.5), StudentQuantile975(1));
}

TEST(NormalTest, StudentsTailAndItsInverseAreExact) {
  EXPECT_NEAR(StudentTail(12.7062, 1), 0.025, 1e-6);
  EXPECT_NEAR(StudentTail(4.30265, 2), 0.025, 1e-7);
  EXPECT_NEAR(StudentTail(3.16927, 10), 0.005, 1e-7);
  EXPECT_NEAR(StudentTail(0, 7), 0.5, 1e-12);
  EXPECT_NEAR(StudentTail(-2.22814, 10), 0.975, 1e-6);
  EXPECT_NEAR(StudentTail(1.959964, 1e7), 0.025, 1e-6);
  for (const double freedom : {0.7, 1.0, 2.0, 3.5, 10.0, 300.0}) {
    for (const double tail : {1e-6, 0.001, 0.025, 0.3}) {
      EXPECT_NEAR(StudentTail(StudentTailQuantile(tail, freedom), freedom) / tail, 1, 1e-6)
          << freedom << " " << tail;
    }
  }
}

}  // namespace
}  // namespace diapason
