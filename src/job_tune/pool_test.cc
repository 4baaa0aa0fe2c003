#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "base/sign_flip.h"
#include "job_tune/result.h"

namespace diapason::job_tune {
namespace {

using job_profile::CompareSides;
using job_profile::Side;
using job_profile::SidedIteration;
using job_profile::TurnComparison;

TurnComparison Compared(const std::vector<double>& log_gains, double default_seconds = 0.010) {
  TurnComparison compared;
  compared.source = job_profile::Source::kSteps;
  compared.log_gains = log_gains;
  const ShiftEstimate shift = EstimateShift(log_gains);
  compared.gain = std::exp(shift.estimate);
  compared.low = std::exp(shift.low);
  compared.high = std::exp(shift.high);
  compared.default_seconds = default_seconds;
  compared.policy_seconds = default_seconds / compared.gain;
  return compared;
}

// Turns around a gain, which differ by one percent.
TurnComparison Around(double gain, size_t changes = 10, double default_seconds = 0.010) {
  std::vector<double> log_gains;
  for (size_t i = 0; i < changes; ++i) {
    log_gains.push_back(std::log(gain) + 0.01 * (i % 2 == 0 ? 1 : -1));
  }
  return Compared(log_gains, default_seconds);
}

TEST(PoolLaunches, OneLaunchIsNotTakenForAll) {
  const VerifyingLaunch one{4, Around(1.2)};
  const PooledGain pooled = PoolLaunches({one});
  EXPECT_EQ(pooled.launches, 1u);
  EXPECT_EQ(pooled.changes, 10u);
  EXPECT_NEAR(pooled.gain, one.compared.gain, 1e-12);
  // 3 % from launch to launch is ±6 %.
  EXPECT_LT(pooled.low, one.compared.gain * 0.944);
  EXPECT_GT(pooled.high, one.compared.gain * 1.059);
  EXPECT_LT(pooled.next_low, pooled.low);
  EXPECT_EQ(pooled.spread, PooledGain::kAssumedSpread);
  EXPECT_NEAR(pooled.default_seconds, 0.010, 1e-12);
}

TEST(PoolLaunches, WhoHadTooFewTurnsDoesNotCount) {
  const PooledGain none = PoolLaunches({{1, Around(1.5, 5)}});
  EXPECT_EQ(none.launches, 0u);
  EXPECT_EQ(none.undecided, 1u);
  EXPECT_EQ(none.gain, 0);
  const PooledGain some = PoolLaunches({{1, Around(1.5, 5)}, {2, Around(1.2)}, {3, Around(1.22)}});
  EXPECT_EQ(some.launches, 2u);
  EXPECT_EQ(some.undecided, 1u);
  EXPECT_EQ(some.changes, 20u);
  EXPECT_LT(some.gain, 1.25);
  EXPECT_EQ(PoolLaunches({}).launches, 0u);
}

VerifyingPair Pair(int number, double gain) {
  return {2 * number, 2 * number + 1, 0.010, 0.010 / gain, 100, 100, ""};
}

TEST(PoolPairs, TheIntervalIsStudentsOverPairs) {
  const PooledGain pooled = PoolPairs({Pair(1, 1.2), Pair(2, 1.25), Pair(3, 1.3)});
  EXPECT_TRUE(pooled.by_pairs);
  EXPECT_EQ(pooled.launches, 3u);
  EXPECT_EQ(pooled.changes, 0u);
  const double mean = (std::log(1.2) + std::log(1.25) + std::log(1.3)) / 3;
  EXPECT_NEAR(pooled.gain, std::exp(mean), 1e-6);
  double squares = 0;
  for (const double gain : {1.2, 1.25, 1.3}) squares += std::pow(std::log(gain) - mean, 2);
  const double half = 4.302653 * std::sqrt(squares / 2 / 3);
  EXPECT_NEAR(std::log(pooled.low), mean - half, 1e-4);
  EXPECT_NEAR(std::log(pooled.high), mean + half, 1e-4);
  EXPECT_LT(pooled.next_low, pooled.low);
  // The pair in the middle.
  EXPECT_EQ(pooled.default_launch, 4);
  EXPECT_EQ(pooled.launch, 5);
}

TEST(PoolPairs, PairsThatCouldNotBeTimedDoNotCount) {
  VerifyingPair failed = Pair(1, 1.2);
  failed.policy_seconds = 0;
  const PooledGain none = PoolPairs({failed});
  EXPECT_EQ(none.launches, 0u);
  EXPECT_EQ(none.undecided, 1u);
  EXPECT_EQ(none.gain, 0);
  const PooledGain one = PoolPairs({failed, Pair(2, 1.2)});
  EXPECT_EQ(one.launches, 1u);
  EXPECT_EQ(one.spread, PooledGain::kAssumedSpread);
  EXPECT_GT(one.low, 1.1);
}

TEST(PoolPairs, TheIntervalHolds) {
  const CounterRandom random(5, 0);
  constexpr int kTries = 2000;
  int held = 0;
  uint64_t drawn = 0;
  for (int i = 0; i < kTries; ++i) {
    std::vector<VerifyingPair> pairs;
    for (int n = 0; n < 4; ++n)
      pairs.push_back(Pair(n, 1.1 * std::exp(0.04 * random.Normal(++drawn))));
    const PooledGain pooled = PoolPairs(pairs);
    held += pooled.low <= 1.1 && 1.1 <= pooled.high ? 1 : 0;
  }
  EXPECT_GT(held, 0.93 * kTries);
  EXPECT_LT(held, 0.97 * kTries);
}

TEST(PoolLaunches, LaunchesThatDifferMakeItWide) {
  const PooledGain alike = PoolLaunches({{1, Around(1.2)}, {2, Around(1.202)}, {3, Around(1.198)}});
  const PooledGain apart = PoolLaunches({{1, Around(1.2)}, {2, Around(1.3)}, {3, Around(1.1)}});
  EXPECT_GT(alike.low, 1.18);
  EXPECT_EQ(alike.spread, 0);
  EXPECT_LT(apart.low, 1.05);
  EXPECT_GT(apart.high, 1.35);
  EXPECT_NEAR(apart.spread, 0.083, 0.01);
}

TEST(PoolLaunches, AgreementByLuckIsNoPrecision) {
  const PooledGain pooled = PoolLaunches({{1, Around(1.2)}, {2, Around(1.2)}});
  EXPECT_NEAR(pooled.gain, 1.2, 1e-9);
  // The turns of each have a standard error of half a percent.
  EXPECT_LT(pooled.low, 1.198);
  EXPECT_GT(pooled.high, 1.202);
  // Not even where the turns of each are all the same.
  const std::vector<double> same(8, 0.1);
  EXPECT_LT(PoolLaunches({{1, Compared(same)}, {2, Compared(same)}}).low, std::exp(0.1));
}

TEST(PoolLaunches, TimesAreThoseOfTheMiddleLaunch) {
  const PooledGain pooled = PoolLaunches(
      {{1, Around(1.3, 10, 0.012)}, {2, Around(1.1, 10, 0.008)}, {3, Around(1.2, 10, 0.010)}});
  EXPECT_NEAR(pooled.default_seconds, 0.010, 1e-12);
  EXPECT_NEAR(pooled.tuned_seconds, 0.010 / 1.2, 1e-4);
  EXPECT_EQ(pooled.launch, 3);
}

// How often the intervals hold: launches of a job whose gain is 1.1 in the mean.
struct Kind {
  const char* name;
  double spread;     // of launches
  bool heavy;        // noise of iterations has heavy tails
  double wandering;  // per iteration: the machine becomes faster and slower
  double drift;      // per iteration: and slower all the time
  bool uneven;       // launches of different lengths
};
constexpr double kTrue = 0.0953;  // log 1.1
constexpr double kNoise = 0.02;

double Noise(const CounterRandom& random, uint64_t index, bool heavy) {
  const bool hiccup = heavy && random.Uniform((uint64_t{1} << 40) + index) < 0.1;
  return random.Normal(index) * (hiccup ? 6 : 1);
}

TurnComparison Launch(const Kind& kind, uint64_t seed, uint64_t launch) {
  const CounterRandom random(seed, launch);
  const double gain = kTrue + kind.spread * random.Normal(uint64_t{1} << 50);
  const int turns = kind.uneven ? 8 + static_cast<int>(launch % 3) * 8 : 13;
  constexpr int kTurn = 10;
  double level = 0;
  std::vector<SidedIteration> iterations;
  for (int i = 0; i < turns * kTurn; ++i) {
    const auto index = static_cast<uint64_t>(i);
    level += kind.drift + kind.wandering * random.Normal((uint64_t{1} << 51) + index);
    const bool policy = i / kTurn % 2 == 1;
    const double log_time =
        level + kNoise * Noise(random, index, kind.heavy) - (policy ? gain : 0.0);
    iterations.push_back({policy ? Side::kPolicy : Side::kDefault, 0.01 * std::exp(log_time)});
  }
  return CompareSides(iterations);
}

class Coverage : public testing::TestWithParam<Kind> {};

TEST_P(Coverage, IntervalsHoldAsOftenAsTheySay) {
  const Kind& kind = GetParam();
  constexpr uint64_t kTries = 2000;
  for (const size_t count : {2u, 3u, 4u, 8u}) {
    size_t held = 0;
    size_t next_held = 0;
    double width = 0;
    for (uint64_t t = 0; t < kTries; ++t) {
      std::vector<VerifyingLaunch> launches;
      for (size_t i = 0; i < count; ++i) {
        launches.push_back({static_cast<int>(i), Launch(kind, 1000 * count + 7, t * 16 + i)});
      }
      const PooledGain pooled = PoolLaunches(launches);
      const double truth = std::exp(kTrue);
      held += pooled.low <= truth && truth <= pooled.high ? 1 : 0;
      const double next = Launch(kind, 1000 * count + 7, t * 16 + count).gain;
      next_held += pooled.next_low <= next && next <= pooled.next_high ? 1 : 0;
      width += (pooled.high - pooled.low) / static_cast<double>(kTries);
    }
    const double share = static_cast<double>(held) / kTries;
    const double next_share = static_cast<double>(next_held) / kTries;
    printf("%s, %zu launches: held %.3f, next %.3f, mean width %.4f\n", kind.name, count, share,
           next_share, width);
    EXPECT_GE(share, 0.92) << count;
    EXPECT_LE(share, 0.98) << count;
    EXPECT_GE(next_share, 0.92) << count;
    EXPECT_LE(next_share, 0.98) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Coverage,
    testing::Values(Kind{"alike", 0, false, 0, 0, false},
                    Kind{"launches differ by 2 %", 0.02, false, 0, 0, false},
                    Kind{"launches differ by 8 %", 0.08, false, 0, 0, false},
                    Kind{"heavy tails", 0, true, 0, 0, false},
                    Kind{"heavy tails, launches differ by 2 %", 0.02, true, 0, 0, false},
                    Kind{"wandering", 0, false, 0.005, 0, false},
                    Kind{"drift and 2 %", 0.02, true, 0.003, 0.002, false},
                    Kind{"launches of different lengths", 0.01, false, 0.002, 0, true}),
    [](const auto& one) { return "Kind" + std::to_string(one.index); });

}  // namespace
}  // namespace diapason::job_tune
