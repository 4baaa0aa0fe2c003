#include "tune/verify.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tune/fake_ranks.h"

namespace diapason::tune {
namespace {

using measure::Measurement;
using measure::PolicyCheck;
using measure::PolicyVerdict;
using measure::Trial;

bool Tuned(const Trial& trial) { return !trial.config.IsDefault(); }

Claim Ring(uint64_t bytes) {
  Claim claim;
  claim.library.bytes = claim.tuned.bytes = bytes;
  claim.tuned.config = {kRing, kSimple, 0};
  return claim;
}

struct Bench {
  explicit Bench(FakeRanks::Times times) : times_(std::move(times)) {
    subject.ranks = 4;
    options.seconds = 86400;  // the rounds end it
    options.most_rounds = 20;
  }
  std::vector<PolicyCheck> Run(const std::vector<Claim>& claims,
                               const VerifyObserver& observer = nullptr) {
    const MeasurerSource source = [this]() -> Result<std::shared_ptr<measure::Measurer>> {
      return std::shared_ptr<measure::Measurer>(
          std::make_shared<FakeRanks>(times_, subject, &history));
    };
    Result<std::vector<PolicyCheck>> checks = Verify(claims, source, options, observer);
    EXPECT_TRUE(checks.ok()) << checks.status().message();
    return checks.ok() ? std::move(checks).value() : std::vector<PolicyCheck>();
  }
  measure::Subject subject;
  VerifyOptions options;
  FakeRanks::History history;

 private:
  FakeRanks::Times times_;
};

TEST(Verify, BothSidesOfEveryClaimRunInTurnsAndEachRoundHasAGain) {
  Bench bench([](const Trial& trial, size_t) { return Took(Tuned(trial) ? 1e-3 : 2e-3); });
  bench.options.launches = 1;
  const std::vector<PolicyCheck> checks = bench.Run({Ring(1024), Ring(4096)});
  ASSERT_EQ(checks.size(), 2U);
  for (const PolicyCheck& check : checks) {
    EXPECT_EQ(check.gains.size(), 20U);
    EXPECT_DOUBLE_EQ(check.gain, 2);
    EXPECT_EQ(check.verdict, PolicyVerdict::kFaster);
    EXPECT_DOUBLE_EQ(check.library.median, 2e-3);
    EXPECT_DOUBLE_EQ(check.policy.median, 1e-3);
  }
  // After the first, which finds out how long the blocks are, the order changes every round.
  const std::vector<Trial>& asked = bench.history.asked;
  EXPECT_FALSE(Tuned(asked[0]));
  ASSERT_EQ(asked.size(), 2 * 2 * 20U + 4U);
  EXPECT_TRUE(Tuned(asked[8]));
  EXPECT_FALSE(Tuned(asked[9]));
}

TEST(Verify, WhatIsTheSameIsNotCalledFaster) {
  // Noise of 20 %, both alike: at most one in twenty may look faster by chance; here none does.
  const CounterRandom random(7, 1);
  size_t draw = 0;
  Bench bench(
      [&](const Trial&, size_t) { return Took(1e-3 * (1 + 0.2 * random.Uniform(draw++))); });
  bench.options.launches = 1;
  std::vector<Claim> claims;
  for (uint64_t i = 1; i <= 40; ++i) claims.push_back(Ring(1024 * i));
  size_t faster = 0;
  for (const PolicyCheck& check : bench.Run(claims)) {
    faster += check.verdict == PolicyVerdict::kFaster ? 1 : 0;
  }
  EXPECT_LE(faster, 2U);
}

TEST(Verify, RanksAreStartedAgainWhileTimeGoesBy) {
  Bench bench([](const Trial& trial, size_t) { return Took(Tuned(trial) ? 1e-3 : 2e-3); });
  bench.options.launches = 3;
  bench.options.most_rounds = 2000000;
  const std::vector<PolicyCheck> checks = bench.Run({Ring(1024)});
  EXPECT_EQ(bench.history.launched_at.size(), 3U);
  EXPECT_EQ(checks[0].verdict, PolicyVerdict::kFaster);
  // New ranks connect and are checked before anything counts.
  for (const size_t at : bench.history.launched_at) {
    EXPECT_TRUE(bench.history.asked[at].check) << at;
    EXPECT_GT(bench.history.asked[at].warmups, 1) << at;
  }
}

TEST(Verify, ThereAreEnoughRoundsToJudgeHoweverLittleTimeThereIs) {
  Bench bench([](const Trial& trial, size_t) { return Took(Tuned(trial) ? 1e-3 : 2e-3); });
  bench.options.seconds = 0;
  const std::vector<PolicyCheck> checks = bench.Run({Ring(1024)});
  EXPECT_EQ(checks[0].gains.size(), static_cast<size_t>(measure::kLeastJudgedRounds));
  EXPECT_EQ(checks[0].verdict, PolicyVerdict::kFaster);
}

TEST(Verify, NothingIsMeasuredAfterTheHardLimit) {
  Bench bench([](const Trial& trial, size_t) { return Took(Tuned(trial) ? 1e-3 : 2e-3); });
  bench.history.block_seconds = 1;
  bench.options.clock = [&bench] { return bench.history.seconds; };
  bench.options.seconds = 2;
  bench.options.hard_seconds = 7;
  const std::vector<PolicyCheck> checks = bench.Run({Ring(1024)});
  EXPECT_LT(bench.history.seconds, 9);
  EXPECT_EQ(checks[0].verdict, PolicyVerdict::kTooFewRounds);
}

TEST(Verify, ClaimsThatAreSettledRest) {
  // The second one is too near to call.
  const CounterRandom random(5, 1);
  size_t draw = 0;
  Bench bench([&](const Trial& trial, size_t) {
    const double gain = trial.bytes == 1024 ? 2 : 1.001;
    return Took(1e-3 * (1 + 0.05 * random.Uniform(draw++)) / (Tuned(trial) ? gain : 1));
  });
  bench.options.most_rounds = 100;
  bench.options.launches = 1;
  const std::vector<PolicyCheck> checks = bench.Run({Ring(1024), Ring(4096)});
  EXPECT_LT(checks[0].gains.size(), 50U);
  EXPECT_EQ(checks[1].gains.size(), 100U);
}

TEST(Verify, WrongResultsAndCrashesFailTheClaimAndNoOther) {
  Bench bench([](const Trial& trial, size_t) {
    Measurement measurement = Took(Tuned(trial) ? 1e-3 : 2e-3);
    if (Tuned(trial) && trial.bytes == 1024 && trial.check) {
      measurement.outcome = dataset::SampleOutcome::kWrong;
      measurement.wrong = 3;
      measurement.note = "3 elements are wrong";
    }
    if (!Tuned(trial) && trial.bytes == 2048) {
      measurement.outcome = dataset::SampleOutcome::kHang;
      measurement.note = "no end";
    }
    return measurement;
  });
  const std::vector<PolicyCheck> checks = bench.Run({Ring(1024), Ring(2048), Ring(4096)});
  EXPECT_EQ(checks[0].verdict, PolicyVerdict::kFailed);
  EXPECT_EQ(checks[0].Failure()->note, "3 elements are wrong");
  EXPECT_EQ(checks[1].verdict, PolicyVerdict::kFailed);
  EXPECT_EQ(checks[2].verdict, PolicyVerdict::kFaster);
}

TEST(Verify, OneChangeOfTheEnvironmentASideAndRound) {
  Bench bench([](const Trial& trial, size_t) { return Took(Tuned(trial) ? 1e-3 : 2e-3); });
  bench.options.launches = 1;
  bench.options.most_rounds = 6;
  Claim a = Ring(1024);
  Claim b = Ring(4096);
  a.library.environment = b.library.environment = "NCCL_TUNER_PLUGIN=none";
  const std::vector<PolicyCheck> checks = bench.Run({a, b});
  size_t changes = 0;
  for (size_t i = 1; i < bench.history.asked.size(); ++i) {
    changes += bench.history.asked[i].environment != bench.history.asked[i - 1].environment ? 1 : 0;
  }
  // The order turns every round, so that two rounds meet in the same environment.
  EXPECT_EQ(changes, 6U);
  EXPECT_EQ(checks[1].gains.size(), 6U);
}

TEST(Verify, WhoeverWatchesCanEndIt) {
  Bench bench([](const Trial& trial, size_t) { return Took(Tuned(trial) ? 1e-3 : 2e-3); });
  int seen = 0;
  const std::vector<PolicyCheck> checks =
      bench.Run({Ring(1024)}, [&](size_t, bool, int, const dataset::Sample& sample) {
        EXPECT_EQ(sample.point.bytes, 1024U);
        return ++seen < 5;
      });
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(checks[0].verdict, PolicyVerdict::kTooFewRounds);
}

}  // namespace
}  // namespace diapason::tune
