#include "mpi_tune/pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace diapason::mpi_tune {
namespace {

Comparison Compared(double iteration, double program, size_t pairs = 10, double noise = 0.01) {
  Comparison compared;
  for (size_t i = 0; i < pairs; ++i) {
    const double sway = 1 + noise * (i % 2 == 0 ? 1 : -1);
    compared.defaults.push_back({1e-3 * sway, program > 0 ? 10 * sway : 0});
    compared.tuned.push_back(
        {iteration > 0 ? 1e-3 / iteration : 0, program > 0 ? 10 / program : 0});
  }
  compared.Judge();
  return compared;
}

TEST(Pairs, AGainHasAnIntervalAroundIt) {
  const Comparison compared = Compared(1.3, 1.2);
  EXPECT_NEAR(compared.iteration.gain, 1.3, 0.02);
  EXPECT_LT(compared.iteration.low, compared.iteration.gain);
  EXPECT_GT(compared.iteration.low, 1.25);
  EXPECT_EQ(compared.iteration.pairs, 10u);
  EXPECT_NEAR(compared.program.gain, 1.2, 0.02);
  EXPECT_TRUE(compared.Confirmed());
}

TEST(Pairs, FewPairsSayNothing) {
  const Comparison compared = Compared(1.3, 1.2, kLeastPairs - 1);
  EXPECT_EQ(compared.iteration.gain, 0);
  EXPECT_FALSE(compared.Confirmed());
}

TEST(Pairs, ADifferenceWithinTheNoiseIsNotConfirmed) {
  EXPECT_FALSE(Compared(1.0, 1.0, 10, 0.05).Confirmed());
  EXPECT_FALSE(Compared(1.002, 1.002, 10, 0.0001).Confirmed());
  EXPECT_FALSE(Compared(0.8, 0.9).Confirmed());
}

TEST(Pairs, LooksAfterEveryPairDoNotInventGains) {
  // Settings without an effect, looked at from the tenth pair on until one look confirms them.
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.05);
  int confirmed = 0;
  constexpr int kPrograms = 400;
  for (int i = 0; i < kPrograms; ++i) {
    Comparison compared;
    for (size_t pair = 0; pair < kMostPairs; ++pair) {
      compared.defaults.push_back({std::exp(noise(random)), 0});
      compared.tuned.push_back({std::exp(noise(random)), 0});
      if (pair + 1 < 10) continue;
      compared.Judge();
      if (compared.Confirmed() || compared.Hopeless()) break;
    }
    confirmed += compared.Confirmed() ? 1 : 0;
  }
  EXPECT_LE(confirmed, kPrograms * 4 / 100);
}

TEST(Pairs, AProgramThatIsSlowerAsAWholeIsNotConfirmed) {
  EXPECT_FALSE(Compared(1.3, 0.9).Confirmed());
  EXPECT_TRUE(Compared(1.3, 0).Confirmed());  // it does not end: only iterations are known
}

TEST(Pairs, WithoutIterationsTheProgramDecides) {
  const Comparison compared = Compared(0, 1.2);
  EXPECT_EQ(&compared.Deciding(), &compared.program);
  EXPECT_TRUE(compared.Confirmed());
}

}  // namespace
}  // namespace diapason::mpi_tune
