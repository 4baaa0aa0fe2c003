#include "base/sign_flip.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace diapason {
namespace {

TEST(SignFlip, CountsSignVectorsExactly) {
  // All four positive: one of sixteen.
  EXPECT_DOUBLE_EQ(SignFlipP({1, 1, 1, 1}), 1.0 / 16);
  // One of four negative: it, and the four with one or none, are as large: 5 of 16.
  EXPECT_DOUBLE_EQ(SignFlipP({1, 1, 1, -1}), 5.0 / 16);
  EXPECT_DOUBLE_EQ(SignFlipP({-1, -1, -1, -1}), 1.0);
  EXPECT_DOUBLE_EQ(SignFlipP({0, 0, 0}), 1.0);
}

TEST(SignFlip, OneDisturbedBlockCountsLittle) {
  // Nine blocks of +5 and one of -1000: with the mean nothing could be shown; here it is one of
  // ten, or eleven sign vectors of 1024.
  std::vector<double> gains(9, 5.0);
  gains.push_back(-1000);
  EXPECT_LE(SignFlipP(gains), 11.0 / 1024);
}

TEST(SignFlip, RejectsAtTheFirstBlockThatItsShareReaches) {
  const double alpha = 0.005;
  const int least = SignFlipTest::LeastBlocks(alpha, 16);
  EXPECT_EQ(least, 9);  // 0.005 * 9 / 16 is the first share above 2^-k
  SignFlipTest test(alpha, 16);
  for (int k = 1; k < least; ++k) EXPECT_FALSE(test.Add(0.1)) << k;
  EXPECT_TRUE(test.Add(0.1));
}

TEST(SignFlip, NeverRejectsNothingOrALoss) {
  SignFlipTest none(0.05, 12);
  SignFlipTest loss(0.05, 12);
  for (int k = 0; k < 12; ++k) {
    EXPECT_FALSE(none.Add(0));
    EXPECT_FALSE(loss.Add(-0.1));
  }
}

// Over all sign vectors the sequential test rejects at most alpha of them, and uses most of it.
TEST(SignFlip, SpendsItsAlphaAndNoMore) {
  constexpr int kBlocks = 10;
  const CounterRandom random(3, 0);
  std::vector<double> sizes;
  for (int i = 0; i < kBlocks; ++i) sizes.push_back(0.1 + random.Uniform(static_cast<uint64_t>(i)));
  for (const double alpha : {0.01, 0.05, 0.2}) {
    int rejected = 0;
    for (int signs = 0; signs < 1 << kBlocks; ++signs) {
      SignFlipTest test(alpha, kBlocks);
      for (int i = 0; i < kBlocks; ++i) {
        const double size = sizes[static_cast<size_t>(i)];
        if (test.Add(((signs >> i) & 1) != 0 ? size : -size)) {
          ++rejected;
          break;
        }
      }
    }
    const double share = rejected / 1024.0;
    EXPECT_LE(share, alpha);
    EXPECT_GE(share, alpha - 2.0 / 1024);
  }
}

TEST(SignFlip, EstimatesTheShift) {
  const ShiftEstimate shift = EstimateShift({1, 2, 3, 4, 5, 6, 7, 8, 9, 1000});
  EXPECT_NEAR(shift.estimate, 5.75, 0.5);  // the outlier pulls it by little
  EXPECT_GT(shift.low, 1.5);
  EXPECT_LT(shift.low, 4);
  EXPECT_GT(shift.high, 7);
  const ShiftEstimate one = EstimateShift({0.25});
  EXPECT_DOUBLE_EQ(one.estimate, 0.25);
  EXPECT_DOUBLE_EQ(one.low, 0.25);
  EXPECT_DOUBLE_EQ(one.high, 0.25);
}

TEST(SignFlip, TheIntervalCoversTheTruth) {
  int covered = 0;
  constexpr int kTimes = 400;
  for (uint64_t t = 0; t < kTimes; ++t) {
    const CounterRandom random(11, t);
    std::vector<double> values;
    for (uint64_t i = 0; i < 10; ++i) values.push_back(0.03 + 0.02 * random.Normal(i));
    const ShiftEstimate shift = EstimateShift(values);
    covered += shift.low <= 0.03 && 0.03 <= shift.high ? 1 : 0;
  }
  // At least 95 % in truth; 400 times leave room for 2 %.
  EXPECT_GE(covered, kTimes * 93 / 100);
  EXPECT_LT(covered, kTimes);
}

}  // namespace
}  // namespace diapason
