#include "measure/policy_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/random.h"

namespace diapason::measure {
namespace {

using dataset::SampleOutcome;

// Times from a function of the trial and of how many came before; remembers what it was asked.
class FakeInstrument : public Measurer {
 public:
  using Times = std::function<double(const Trial&, size_t before)>;
  explicit FakeInstrument(Times times) : times_(std::move(times)) { subject_.ranks = 4; }

  Result<Measurement> Measure(const Trial& trial) override {
    asked.push_back(trial);
    if (asked.size() > gone_after) return Unavailable("the ranks are gone");
    Measurement measurement;
    measurement.iterations = trial.iterations;
    measurement.seconds = times_(trial, asked.size() - 1);
    if (trial.check) measurement.wrong = 0;
    if (fails && fails(trial)) {
      measurement.outcome = outcome;
      measurement.note = "no";
      if (outcome == SampleOutcome::kWrong) measurement.wrong = 7;
    }
    return measurement;
  }
  const Subject& subject() const override { return subject_; }
  double Now() const override { return 0; }

  std::vector<Trial> asked;
  size_t gone_after = SIZE_MAX;
  std::function<bool(const Trial&)> fails;
  SampleOutcome outcome = SampleOutcome::kRefused;

 private:
  Subject subject_;
  Times times_;
};

Trial Ring() {
  Trial trial;
  trial.bytes = 65536;
  trial.config = {kRing, kSimple, 0};
  return trial;
}

bool OfPolicy(const Trial& trial) { return !trial.config.IsDefault(); }

Effort Rounds(int rounds) {
  Effort effort;
  effort.least_rounds = effort.most_rounds = rounds;
  effort.seconds = 1e9;
  return effort;
}

PolicyCheck Checked(FakeInstrument* measurer, const Trial& trial, const Effort& effort,
                    std::vector<dataset::Sample>* samples = nullptr) {
  Result<PolicyCheck> check = CheckPolicy(measurer, trial, effort, samples);
  EXPECT_TRUE(check.ok()) << check.status().message();
  return check.ok() ? std::move(check).value() : PolicyCheck{};
}

TEST(PolicyCheckTest, BothRunInEveryRoundAndTakeTurnsAtBeingFirst) {
  FakeInstrument measurer([](const Trial& trial, size_t) { return OfPolicy(trial) ? 1. : 2.; });
  std::vector<dataset::Sample> samples;
  const PolicyCheck check = Checked(&measurer, Ring(), Rounds(7), &samples);
  ASSERT_EQ(measurer.asked.size(), 14U);
  ASSERT_EQ(samples.size(), 14U);
  for (size_t i = 0; i < measurer.asked.size(); ++i) {
    const size_t round = i / 2;
    const Trial& trial = measurer.asked[i];
    EXPECT_EQ(OfPolicy(trial), (i + round) % 2 == 1) << i;
    EXPECT_EQ(trial.bytes, 65536U);
    EXPECT_EQ(trial.check, round == 0);
    EXPECT_EQ(trial.warmups, round == 0 ? 5 : 1);
    EXPECT_EQ(samples[i].round, static_cast<int>(round));
    EXPECT_EQ(samples[i].point.algorithm, OfPolicy(trial) ? "ring" : "");
  }
  EXPECT_EQ(check.gains, std::vector<double>(7, 2.0));
  EXPECT_EQ(check.gain, 2);
  EXPECT_EQ(check.library.median, 2);
  EXPECT_EQ(check.policy.median, 1);
  EXPECT_EQ(check.policy.wrong, 0);
  EXPECT_EQ(check.verdict, PolicyVerdict::kFaster);
}

TEST(PolicyCheckTest, DriftMakesNoDifference) {
  // Every block is 5 % slower than the one before: whoever always came second would lose.
  FakeInstrument measurer([](const Trial&, size_t before) {
    return 1e-4 * std::pow(1.05, static_cast<double>(before));
  });
  const PolicyCheck check = Checked(&measurer, Ring(), Rounds(12));
  EXPECT_EQ(check.verdict, PolicyVerdict::kNoDifference);
  EXPECT_NEAR(check.gain, 1, 0.01);
  EXPECT_LT(check.interval.low, 1);
  EXPECT_GT(check.interval.high, 1);
}

TEST(PolicyCheckTest, ASmallDifferenceUnderLargeDriftIsSeen) {
  FakeInstrument measurer([](const Trial& trial, size_t before) {
    return 1e-4 * (OfPolicy(trial) ? 1.1 : 1) * (1 + 0.1 * static_cast<double>(before / 2));
  });
  const PolicyCheck check = Checked(&measurer, Ring(), Rounds(10));
  EXPECT_EQ(check.verdict, PolicyVerdict::kSlower);
  EXPECT_NEAR(check.gain, 1 / 1.1, 1e-9);
}

TEST(PolicyCheckTest, RoundsAreTakenUntilTheGainIsTight) {
  const CounterRandom random(3, 0);
  FakeInstrument steady([](const Trial&, size_t) { return 1e-4; });
  Effort effort;
  effort.seconds = 1e9;
  // Five would do for a figure, not for a verdict.
  EXPECT_EQ(Checked(&steady, Ring(), effort).gains.size(), 6U);
  FakeInstrument noisy(
      [&](const Trial&, size_t before) { return 1e-4 * std::exp(0.3 * random.Normal(before)); });
  EXPECT_EQ(Checked(&noisy, Ring(), effort).gains.size(), 15U);
  effort.seconds = 0;
  FakeInstrument late(
      [&](const Trial&, size_t before) { return 1e-4 * std::exp(0.3 * random.Normal(before)); });
  EXPECT_EQ(Checked(&late, Ring(), effort).gains.size(), 6U);
}

TEST(PolicyCheckTest, FewRoundsAreNotJudged) {
  FakeInstrument measurer([](const Trial& trial, size_t) { return OfPolicy(trial) ? 1. : 2.; });
  const PolicyCheck check = Checked(&measurer, Ring(), Rounds(5));
  EXPECT_EQ(check.gains.size(), 5U);
  EXPECT_EQ(check.gain, 2);
  EXPECT_EQ(check.verdict, PolicyVerdict::kTooFewRounds);
}

TEST(PolicyCheckTest, WhatThePolicyLeavesToTheLibraryIsMeasuredOnce) {
  FakeInstrument measurer([](const Trial&, size_t) { return 1e-4; });
  Trial trial = Ring();
  trial.config = {};
  std::vector<dataset::Sample> samples;
  const PolicyCheck check = Checked(&measurer, trial, Rounds(6), &samples);
  EXPECT_EQ(measurer.asked.size(), 6U);
  EXPECT_EQ(samples.size(), 6U);
  EXPECT_EQ(check.verdict, PolicyVerdict::kDefault);
  EXPECT_EQ(check.library.rounds.size(), 6U);
  EXPECT_TRUE(check.policy.rounds.empty());
  EXPECT_TRUE(check.gains.empty());
}

TEST(PolicyCheckTest, WhatTheLibraryRefusesIsNotAskedAgain) {
  FakeInstrument measurer([](const Trial&, size_t) { return 1e-4; });
  measurer.fails = OfPolicy;
  const PolicyCheck check = Checked(&measurer, Ring(), Rounds(6));
  EXPECT_EQ(measurer.asked.size(), 2U);
  EXPECT_EQ(check.verdict, PolicyVerdict::kFailed);
  ASSERT_EQ(check.Failure(), &check.policy);
  EXPECT_EQ(check.policy.outcome, SampleOutcome::kRefused);
  EXPECT_EQ(check.policy.note, "no");
  // What is known of the default is kept.
  EXPECT_EQ(check.library.median, 1e-4);
}

TEST(PolicyCheckTest, ADefaultThatHangsEndsTheCheck) {
  FakeInstrument measurer([](const Trial&, size_t) { return 1e-4; });
  measurer.fails = [](const Trial& trial) { return !OfPolicy(trial); };
  measurer.outcome = SampleOutcome::kHang;
  const PolicyCheck check = Checked(&measurer, Ring(), Rounds(6));
  EXPECT_EQ(measurer.asked.size(), 1U);
  EXPECT_EQ(check.Failure(), &check.library);
}

TEST(PolicyCheckTest, WrongResultsAreFailuresAndCount) {
  FakeInstrument measurer([](const Trial&, size_t) { return 1e-4; });
  measurer.fails = OfPolicy;
  measurer.outcome = SampleOutcome::kWrong;
  const PolicyCheck check = Checked(&measurer, Ring(), Rounds(6));
  EXPECT_EQ(check.policy.wrong, 7);
  EXPECT_TRUE(Summarize({check}).wrong);
}

TEST(PolicyCheckTest, RanksThatAreGoneAreAnError) {
  FakeInstrument measurer([](const Trial&, size_t) { return 1e-4; });
  measurer.gone_after = 3;
  EXPECT_FALSE(CheckPolicy(&measurer, Ring(), Rounds(6)).ok());
}

// Rounds of launches with these gains, which scatter by 1 % in each launch.
PolicyCheck OfLaunches(const std::vector<double>& gains) {
  PolicyCheck check;
  for (size_t launch = 0; launch < gains.size(); ++launch) {
    for (const double off : {-0.01, 0.0, 0.01, -0.005, 0.005, 0.002}) {
      check.gains.push_back(gains[launch] * (1 + off));
      check.launches.push_back(static_cast<int>(launch) + 1);
    }
  }
  check.Conclude();
  return check;
}

TEST(PolicyCheckTest, WhatLaunchesVaryByIsInTheInterval) {
  const PolicyCheck same = OfLaunches({1.06, 1.06, 1.06, 1.06});
  EXPECT_EQ(same.verdict, PolicyVerdict::kFaster);
  // 24 rounds say 1.06 as surely as before; four launches do not.
  const PolicyCheck varied = OfLaunches({1.00, 1.03, 1.09, 1.12});
  EXPECT_FALSE(varied.launches_differ) << "none is 15 % from another";
  EXPECT_NEAR(varied.gain, same.gain, 0.01);
  EXPECT_EQ(varied.verdict, PolicyVerdict::kNoDifference);
  EXPECT_LT(varied.interval.low, 1.0);
  // A large gain stands.
  EXPECT_EQ(OfLaunches({1.40, 1.45, 1.48, 1.52}).verdict, PolicyVerdict::kFaster);
  // More launches tell more.
  const PolicyCheck more = OfLaunches({1.00, 1.03, 1.09, 1.12, 1.01, 1.04, 1.08, 1.11});
  EXPECT_EQ(more.verdict, PolicyVerdict::kFaster);
  EXPECT_LT(more.interval.high - more.interval.low, varied.interval.high - varied.interval.low);
}

TEST(PolicyCheckTest, OneLaunchIsJudgedByItsRounds) {
  PolicyCheck check = OfLaunches({1.06});
  EXPECT_EQ(check.verdict, PolicyVerdict::kFaster);
  const Interval interval = check.interval;
  check.launches.clear();
  check.Conclude();
  EXPECT_DOUBLE_EQ(check.interval.low, interval.low);
  EXPECT_DOUBLE_EQ(check.interval.high, interval.high);
}

TEST(PolicySummaryTest, MeansAreOverWhatWasComparedAndTheWorstIsNamed) {
  std::vector<PolicyCheck> checks(6);
  const auto set = [&](size_t i, PolicyVerdict verdict, double gain) {
    checks[i].verdict = verdict;
    checks[i].gain = gain;
  };
  set(0, PolicyVerdict::kDefault, 0);
  set(1, PolicyVerdict::kFaster, 2);
  set(2, PolicyVerdict::kSlower, 0.5);
  set(3, PolicyVerdict::kNoDifference, 1);
  set(4, PolicyVerdict::kFailed, 0);
  set(5, PolicyVerdict::kFaster, 16);
  const PolicySummary summary = Summarize(checks);
  EXPECT_EQ(summary.compared, 4U);
  EXPECT_EQ(summary.faster, 2U);
  EXPECT_EQ(summary.slower, 1U);
  EXPECT_EQ(summary.no_difference, 1U);
  EXPECT_EQ(summary.failed, 1U);
  EXPECT_EQ(summary.left_to_library, 1U);
  EXPECT_NEAR(summary.mean_gain, 2, 1e-12);
  EXPECT_EQ(summary.worst, 2U);
  EXPECT_FALSE(summary.wrong);
  EXPECT_EQ(Summarize({}).compared, 0U);
}

// Verifications of calls of one gain, whose launches vary by `varies`.
std::vector<PolicyCheck> Verified(size_t calls, double gain, double varies, uint64_t seed) {
  const CounterRandom random(seed, 3);
  uint64_t draw = 0;
  std::vector<PolicyCheck> checks(calls);
  for (PolicyCheck& check : checks) {
    for (int launch = 1; launch <= 4; ++launch) {
      const double own = std::log(gain) + varies * random.Normal(2 * draw++);
      for (int round = 0; round < 8; ++round) {
        check.gains.push_back(std::exp(own + 0.01 * random.Normal(2 * draw++)));
        check.launches.push_back(launch);
      }
    }
  }
  return checks;
}

TEST(VariationOfLaunches, IsThatOfAllCallsTogether) {
  const LaunchVariation usual = VariationOfLaunches(Verified(60, 1.0, 0.05, 1));
  EXPECT_NEAR(std::sqrt(usual.variance), 0.05, 0.01);
  EXPECT_GT(usual.freedom, 8);
  EXPECT_NEAR(std::sqrt(VariationOfLaunches(Verified(60, 1.0, 0.0, 1)).variance), 0, 0.005);
}

TEST(VariationOfLaunches, OfAFewCallsIsNotKnown) {
  EXPECT_EQ(VariationOfLaunches(Verified(3, 1.0, 0.05, 1)).freedom, 0);
  EXPECT_EQ(VariationOfLaunches({}).freedom, 0);
  std::vector<PolicyCheck> failed = Verified(20, 1.0, 0.05, 1);
  for (PolicyCheck& check : failed) check.policy.outcome = SampleOutcome::kRefused;
  EXPECT_EQ(VariationOfLaunches(failed).freedom, 0) << "of calls that failed";
}

// Launches that happen to agree do not make a gain sure where launches usually vary.
TEST(VariationOfLaunches, KeepsFalseGainsRare) {
  int alone = 0;
  int together = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::vector<PolicyCheck> checks = Verified(20, 1.0, 0.05, seed);
    const LaunchVariation usual = VariationOfLaunches(checks);
    for (PolicyCheck& check : checks) {
      check.Conclude();
      alone += check.verdict == PolicyVerdict::kFaster ? 1 : 0;
      check.Conclude(usual);
      together += check.verdict == PolicyVerdict::kFaster ? 1 : 0;
    }
  }
  EXPECT_LT(together, 800 * 0.04);
  EXPECT_GT(alone, 2 * together);
}

TEST(VariationOfLaunches, LeavesLargeGains) {
  std::vector<PolicyCheck> checks = Verified(20, 1.3, 0.05, 1);
  const LaunchVariation usual = VariationOfLaunches(checks);
  for (PolicyCheck& check : checks) {
    check.Conclude(usual);
    EXPECT_EQ(check.verdict, PolicyVerdict::kFaster);
  }
}

}  // namespace
}  // namespace diapason::measure
