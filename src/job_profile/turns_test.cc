#include "job_profile/turns.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace diapason::job_profile {
namespace {

// Uniform in [-1, 1].
double Noise(uint64_t seed, uint64_t i) {
  return static_cast<double>(MixBits(seed ^ MixBits(i)) >> 11) * 0x1p-52 - 1;
}

// Turns as agree::Turns has them, with some mixed iterations at every change.
std::vector<SidedIteration> Played(double gain, double noise, double drift, int turns, int length,
                                   uint64_t seed) {
  std::vector<SidedIteration> iterations;
  for (int turn = 0; turn < turns; ++turn) {
    const bool policy = turn % 4 == 1 || turn % 4 == 2;
    const bool changes = turn % 2 == 1;
    for (int i = 0; i < length; ++i) {
      const auto n = static_cast<uint64_t>(iterations.size());
      double seconds = 0.01 * (policy ? 1 / gain : 1) * (1 + noise * Noise(seed, n)) *
                       (1 + drift * static_cast<double>(n));
      if (n % 97 == 13) seconds *= 4;  // a hiccup
      const Side side = changes && i < 3 ? Side::kMixed : policy ? Side::kPolicy : Side::kDefault;
      iterations.push_back({side, seconds});
    }
  }
  return iterations;
}

TEST(CompareSides, FindsAGainInNoise) {
  const TurnComparison compared = CompareSides(Played(1.05, 0.05, 0, 40, 50, 1));
  EXPECT_EQ(compared.log_gains.size(), 20u);
  EXPECT_EQ(compared.mixed_iterations, 60u);
  EXPECT_EQ(compared.Verdict(), "the policy is faster");
  EXPECT_NEAR(compared.gain, 1.05, 0.01);
  EXPECT_LT(compared.low, 1.05);
  EXPECT_GT(compared.high, 1.05);
}

TEST(CompareSides, FindsALoss) {
  EXPECT_EQ(CompareSides(Played(0.95, 0.05, 0, 40, 50, 2)).Verdict(), "the policy is slower");
}

// A machine that slows down steadily must not favour the one that had its turns first.
TEST(CompareSides, DriftFavoursNeither) {
  const TurnComparison compared = CompareSides(Played(1, 0.01, 2e-4, 40, 50, 3));
  EXPECT_NEAR(compared.gain, 1, 0.003);
  EXPECT_LT(compared.low, 1);
  EXPECT_GT(compared.high, 1);
}

// At most 5 % of jobs in which both are the same may claim a difference; 200 with a fixed seed.
TEST(CompareSides, EqualTurnsAreSeldomFoundDifferent) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const TurnComparison compared = CompareSides(Played(1, 0.1, 0, 24, 30, 100 + seed));
    wrong += compared.Verdict() != "no difference was found";
  }
  EXPECT_LE(wrong, 14);
}

TEST(CompareSides, FewChangesDecideNothing) {
  EXPECT_EQ(CompareSides({}).Verdict(), "cannot tell");
  EXPECT_EQ(CompareSides(Played(2, 0.01, 0, 10, 50, 4)).Verdict(), "cannot tell");
  // Turns that are too short for their borders.
  EXPECT_EQ(CompareSides(Played(2, 0.01, 0, 100, 3, 5)).Verdict(), "cannot tell");
}

TEST(TurnComparer, JournalsWithoutTurnsAreAnError) {
  EXPECT_EQ(TurnComparer().Finish().status().code(), ErrorCode::kNotFound);
  TurnComparer comparer;
  comparer.Add("j", journal::JournalContents());
  EXPECT_EQ(comparer.Finish().status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace diapason::job_profile
