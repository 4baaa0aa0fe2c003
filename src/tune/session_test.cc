#include "tune/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/random.h"
#include "measure/iteration.h"
#include "policy/parse.h"
#include "search/sweep.h"
#include "tune/fake_ranks.h"
#include "tune/played_tuning.h"
#include "tune/workload.h"

namespace diapason::tune {
namespace {

using measure::Measurement;
using measure::Trial;

// A library with a known best: tree is twice as fast below 64 KiB, everything else as fast as the
// default or slower. Readings have noise of a few per cent.
class Tuning : public ::testing::Test {
 protected:
  Tuning() : random_(11, 3) {
    subject_.backend = "nccl";
    subject_.ranks = 4;
    subject_.machine.library = "nccl";
    subject_.machine.library_version = "2.28.9";
    plan_.operations = {Operation::kAllReduce};
    plan_.sizes = {1024, 4096, 16384, 65536, 262144, 1048576};
    plan_.algorithms = {"ring", "tree"};
    plan_.protocols = {"simple"};
    // In memory where that is possible: every sample is written before the next is taken.
    const bool memory = std::filesystem::is_directory("/dev/shm");
    path_ = (memory ? "/dev/shm/" : ::testing::TempDir()) + "diapason_tune_" +
            std::to_string(::getpid()) + "_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".db";
    Result<std::unique_ptr<dataset::SampleStore>> store =
        dataset::SampleStore::Open(path_, dataset::SampleStore::Access::kWrite);
    EXPECT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
    // Counts end it, on a slow machine as well.
    options_.seconds = 86400;
    options_.samples = 120;
    options_.fit = false;
  }
  ~Tuning() override {
    store_.reset();
    std::filesystem::remove(path_);
  }

  double Noise() { return 1 + 0.03 * (random_.Uniform(draw_++) - 0.5); }

  double Truth(const Trial& trial) const {
    const double base = 20e-6 + static_cast<double>(trial.bytes) * 1e-9;
    if (trial.config.IsDefault()) return base;
    if (trial.config.algorithm == kTree) return trial.bytes <= 16384 ? base / 2 : base * 3;
    return base * 1.2;
  }

  Result<TuneOutcome> Run(const FakeRanks::Times& times, const ProgressCallback& watch = nullptr) {
    TuneInputs work;
    work.store = store_.get();
    work.source = [this, times]() -> Result<std::shared_ptr<measure::Measurer>> {
      return std::shared_ptr<measure::Measurer>(
          std::make_shared<FakeRanks>(times, subject_, &history_));
    };
    work.call_cases = [this](const measure::Subject& subject) {
      return spec_.has_value() ? IterationCallCases(*spec_, plan_, subject)
                               : search::MakeCallCases(plan_, subject);
    };
    return Tune(
        work, options_, watch ? watch : [](Stage, double, const std::string&) { return true; });
  }

  TuneOutcome Tuned(const FakeRanks::Times& times) {
    Result<TuneOutcome> outcome = Run(times);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    return outcome.ok() ? std::move(outcome).value() : TuneOutcome();
  }

  size_t Runs(const std::string& source) {
    size_t count = 0;
    const Result<std::vector<dataset::SampleRun>> runs = store_->Runs();
    for (const dataset::SampleRun& run : runs.value()) count += run.source == source ? 1 : 0;
    return count;
  }

  std::string path_;
  std::unique_ptr<dataset::SampleStore> store_;
  measure::Subject subject_;
  search::SweepPlan plan_;
  std::optional<measure::IterationSpec> spec_;
  SessionOptions options_;
  FakeRanks::History history_;
  CounterRandom random_;
  size_t draw_ = 0;
};

TEST_F(Tuning, WhatIsFasterIsFoundProvenAndWritten) {
  const TuneOutcome outcome =
      Tuned([this](const Trial& trial, size_t) { return Took(Truth(trial) * Noise()); });
  ASSERT_EQ(outcome.lines.size(), 6U);
  for (const TunedCall& line : outcome.lines) {
    if (line.trial.bytes <= 16384) {
      EXPECT_EQ(line.ending, CallOutcome::kTuned) << line.trial.bytes << ": " << line.why;
      EXPECT_EQ(line.config.algorithm, kTree);
      EXPECT_NEAR(line.Gain(), 2, 0.1);
      EXPECT_GE(line.check->gains.size(), static_cast<size_t>(measure::kLeastJudgedRounds));
    } else {
      EXPECT_NE(line.ending, CallOutcome::kTuned) << line.trial.bytes;
      EXPECT_EQ(line.Gain(), 1);
      EXPECT_FALSE(line.why.empty());
    }
  }
  EXPECT_NEAR(outcome.MeanGain(), std::sqrt(2), 0.05);
  EXPECT_EQ(outcome.policy.rules.size(), 1U);
  EXPECT_NE(outcome.policy_text.find("verified: "), std::string::npos) << outcome.policy_text;
  // What is written is what was proven, and it can be read back.
  policy::ParseOptions parse;
  const Result<policy::Policy> back =
      policy::ParseStrictly(outcome.policy_text, "policy.conf", parse);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back.value().rules.size(), 1U);
  EXPECT_GT(history_.launched_at.size(), 1U) << "it was verified on the ranks of the search";
  EXPECT_EQ(Runs("tune"), 1U);
  EXPECT_EQ(Runs("verify"), 1U);
}

TEST_F(Tuning, WithNothingToGainNothingIsWritten) {
  const TuneOutcome outcome = Tuned(
      [this](const Trial& trial, size_t) { return Took(1e-9 * double(trial.bytes) * Noise()); });
  EXPECT_EQ(outcome.Tuned(), 0U);
  EXPECT_TRUE(outcome.policy.rules.empty());
  EXPECT_EQ(outcome.MeanGain(), 1);
}

TEST_F(Tuning, WhatFreshRanksDoNotConfirmIsTakenOutAgain) {
  // On the first ranks tree is fast; on all others it is slow.
  const TuneOutcome outcome = Tuned([this](const Trial& trial, size_t) {
    const bool fresh = history_.launched_at.size() > 4;  // the final round has three
    const double truth = Truth(trial);
    return Took((fresh && trial.config.algorithm == kTree ? truth * 4 : truth) * Noise());
  });
  EXPECT_EQ(outcome.Tuned(), 0U);
  EXPECT_TRUE(outcome.policy.rules.empty()) << outcome.policy_text;
  size_t refused = 0;
  for (const TunedCall& line : outcome.lines) {
    if (line.ending != CallOutcome::kNotConfirmed) continue;
    ++refused;
    EXPECT_TRUE(line.planned.has_value());
    EXPECT_NE(line.why.find("the verification says"), std::string::npos);
  }
  EXPECT_EQ(refused, 3U);
}

TEST_F(Tuning, OneSizeThatIsNotConfirmedDoesNotTakeItsNeighboursWithIt) {
  const TuneOutcome outcome = Tuned([this](const Trial& trial, size_t) {
    const bool fresh = history_.launched_at.size() > 4;  // the final round has three
    const bool turned = fresh && trial.config.algorithm == kTree && trial.bytes == 4096;
    return Took((turned ? 4 : 1) * Truth(trial) * Noise());
  });
  ASSERT_EQ(outcome.Tuned(), 2U);
  EXPECT_EQ(outcome.lines[0].ending, CallOutcome::kTuned);
  EXPECT_EQ(outcome.lines[1].ending, CallOutcome::kNotConfirmed);
  EXPECT_EQ(outcome.lines[2].ending, CallOutcome::kTuned);
  // The size between the two is in no row.
  for (const policy::Rule& rule : outcome.policy.rules) {
    EXPECT_FALSE(rule.min_bytes <= 4096 && rule.max_bytes >= 4096);
  }
}

TEST_F(Tuning, WhatCrashesIsNeverChosenAndNotTriedByTheNextOneEither) {
  const FakeRanks::Times times = [this](const Trial& trial, size_t) {
    Measurement measurement = Took(Truth(trial) * Noise());
    if (trial.config.algorithm == kTree) {
      measurement.outcome = dataset::SampleOutcome::kCrash;
      measurement.note = "rank 3 is gone";
    }
    return measurement;
  };
  const TuneOutcome first = Tuned(times);
  EXPECT_EQ(first.Tuned(), 0U);
  EXPECT_GT(first.lines[0].failed, 0U);
  history_ = {};
  const TuneOutcome second = Tuned(times);
  for (const Trial& trial : history_.asked) EXPECT_NE(trial.config.algorithm, kTree);
  ASSERT_EQ(second.notes.size(), 1U);
  EXPECT_NE(second.notes[0].find("earlier run"), std::string::npos);
}

TEST_F(Tuning, WhatAnEarlierOneDiedOfIsLeftOut) {
  // As a process leaves it that is killed while it measures.
  dataset::SampleRun run;
  run.id = "killed";
  run.source = "tune";
  ASSERT_TRUE(store_->BeginRun(run).value());
  Trial deadly;
  deadly.bytes = 4096;
  deadly.config = {kTree, kSimple, 0, 0};
  const dataset::Point point = measure::PointOf(deadly, subject_);
  ASSERT_TRUE(store_->AddAndTry("killed", {}, &point).ok());
  bool asked = false;
  const Result<TuneOutcome> outcome = Run([&](const Trial& trial, size_t) {
    asked = asked || (trial.bytes == 4096 && trial.config.algorithm == kTree);
    return Took(Truth(trial) * Noise());
  });
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_FALSE(asked);
  ASSERT_FALSE(outcome.value().notes.empty());
  EXPECT_NE(outcome.value().notes[0].find("left out"), std::string::npos);
}

TEST_F(Tuning, EverythingIsStoredBeforeTheNextIsMeasured) {
  const Result<std::unique_ptr<dataset::SampleStore>> other =
      dataset::SampleStore::Open(path_, dataset::SampleStore::Access::kRead);
  size_t calls = 0;
  size_t stored = 0;
  const Result<TuneOutcome> outcome = Run([&](const Trial& trial, size_t) {
    if (!trial.check && ++calls <= 50) {
      // Blocks that were measured before this one, however many calibrations there were.
      const size_t now = other.value()->Read().value().records.size();
      EXPECT_EQ(now, calls - 1);
      stored = now;
    }
    return Took(Truth(trial) * Noise());
  });
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_GT(stored, 10u);
}

TEST_F(Tuning, WrongResultsAreNeverChosen) {
  const TuneOutcome outcome = Tuned([this](const Trial& trial, size_t) {
    Measurement measurement = Took(Truth(trial) * Noise());
    if (trial.config.algorithm == kTree && trial.check) {
      measurement.outcome = dataset::SampleOutcome::kWrong;
      measurement.wrong = 5;
    }
    return measurement;
  });
  EXPECT_EQ(outcome.Tuned(), 0U);
}

TEST_F(Tuning, NoStepTakesMoreSamplesThanAllowedOrThanAJudgementNeeds) {
  options_.between = false;
  for (const int64_t samples : {18, 120}) {
    options_.samples = samples;
    std::map<Stage, size_t> shown;
    const Result<TuneOutcome> outcome =
        Run([this](const Trial& trial, size_t) { return Took(Truth(trial) * Noise()); },
            [&](Stage stage, double, const std::string&) { return ++shown[stage], true; });
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    const size_t most = static_cast<size_t>(samples);
    // The final round has three candidates in each of six sizes, and three rounds at least.
    EXPECT_LE(outcome.value().samples, most + std::max<size_t>(most, 3 * 3 * 6)) << samples;
    EXPECT_GE(outcome.value().samples, most) << samples;
    size_t claims = 0;
    for (const TunedCall& line : outcome.value().lines) claims += line.check.has_value() ? 1 : 0;
    // What the neighbours run and who came second are verified as well.
    EXPECT_LE(shown[Stage::kVerifying],
              2 * std::max<size_t>(most, 2 * (claims + 1) * measure::kLeastJudgedRounds))
        << samples;
  }
}

TEST_F(Tuning, InterruptingItKeepsWhatWasMeasuredAndWritesNoRow) {
  int shown = 0;
  const Result<TuneOutcome> outcome =
      Run([this](const Trial& trial, size_t) { return Took(Truth(trial) * Noise()); },
          [&](Stage, double, const std::string&) { return ++shown < 30; });
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_TRUE(outcome.value().interrupted);
  EXPECT_TRUE(outcome.value().policy.rules.empty());
  EXPECT_GT(store_->Read().value().records.size(), 10U);
  EXPECT_EQ(store_->Runs().value().front().state, dataset::SampleRun::State::kInterrupted);
}

TEST_F(Tuning, RanksThatCannotBeStartedAreAnError) {
  TuneInputs work;
  work.store = store_.get();
  work.source = []() -> Result<std::shared_ptr<measure::Measurer>> {
    return Unavailable("no ranks");
  };
  work.call_cases = [this](const measure::Subject& subject) {
    return search::MakeCallCases(plan_, subject);
  };
  const Result<TuneOutcome> outcome =
      Tune(work, options_, [](Stage, double, const std::string&) { return true; });
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().message(), "no ranks");
}

TEST_F(Tuning, AnIterationIsProvenWithAllChangesTogether) {
  spec_ = measure::PresetSpec("fsdp", {.parts = 2, .bytes = 65536}).value();
  plan_.algorithms = {};
  // Ring with one channel helps either collective by itself; both together are slower than neither.
  bool together_hurts = true;
  const FakeRanks::Times times = [&](const Trial& trial, size_t) {
    const measure::IterationSpec spec = measure::DecodeSpec(trial.workload).value();
    bool gathers = false;
    bool scatters = false;
    for (const measure::Bucket& bucket : spec.buckets) {
      const bool meant = bucket.operation == trial.operation && bucket.bytes == trial.bytes;
      const Config& config = meant && !trial.config.IsDefault() ? trial.config : bucket.config;
      const bool ring = config.algorithm == kRing && config.protocol == kSimple;
      gathers = gathers || (ring && bucket.operation == Operation::kAllGather);
      scatters = scatters || (ring && bucket.operation == Operation::kReduceScatter);
    }
    double step = 10e-3;
    if (gathers || scatters) step = 7e-3;
    if (gathers && scatters) step = together_hurts ? 12e-3 : 5e-3;
    return Took(step * Noise());
  };
  const TuneOutcome hurt = Tuned(times);
  ASSERT_TRUE(hurt.whole.has_value());
  EXPECT_LT(hurt.whole->gain, 1);
  EXPECT_EQ(hurt.Tuned(), 0U);
  EXPECT_TRUE(hurt.policy.rules.empty());

  together_hurts = false;
  const TuneOutcome helped = Tuned(times);
  ASSERT_TRUE(helped.whole.has_value());
  EXPECT_NEAR(helped.whole->gain, 2, 0.1);
  EXPECT_EQ(helped.Tuned(), 2U);
  EXPECT_EQ(helped.policy.rules.size(), 2U);
  // The store says which of the two sides had the policy.
  size_t with_policy = 0;
  const Result<dataset::StoreContents> contents = store_->Read();
  for (const dataset::StoredSample& record : contents.value().records) {
    with_policy += record.sample.point.environment.starts_with("DIAPASON_POLICY=") ? 1 : 0;
  }
  EXPECT_GT(with_policy, 5U);
}

TEST_F(Tuning, WeightsCountCalls) {
  options_.weight = [](const Trial& trial) { return trial.bytes == 1024 ? 100.0 : 1.0; };
  const TuneOutcome outcome =
      Tuned([this](const Trial& trial, size_t) { return Took(Truth(trial) * Noise()); });
  const TuneOutcome::Total total = outcome.Weighted();
  EXPECT_GT(total.before / total.after, 1.4);
}

// What a policy runs for an allreduce.
Config RunsAt(const TuneOutcome& outcome, uint64_t bytes) {
  for (const CoveredRange& one : outcome.coverage) {
    if (one.range.first <= bytes && bytes <= one.range.last) return one.range.config;
  }
  ADD_FAILURE() << bytes << " bytes are in no range";
  return {};
}

TEST_F(Tuning, ADipBetweenTwoSizesIsFoundAndLeftToTheLibrary) {
  plan_.sizes = {4096, 8192, 16384, 32768};
  options_.samples = 200;
  const TuneOutcome outcome = Tuned([this](const Trial& trial, size_t) {
    const bool tree = trial.config.algorithm == kTree;
    const bool dip = tree && trial.bytes > 18000 && trial.bytes < 30000;
    const double base = trial.config.IsDefault() ? 40e-6 : (tree ? 25e-6 : 60e-6);
    return Took((dip ? 3 : 1) * base * Noise());
  });
  EXPECT_EQ(outcome.Tuned(), 4U);
  EXPECT_FALSE(outcome.between.empty());
  EXPECT_EQ(RunsAt(outcome, 6000).algorithm, kTree);
  EXPECT_EQ(RunsAt(outcome, 12000).algorithm, kTree);
  EXPECT_TRUE(RunsAt(outcome, 23000).IsDefault());
  // Rows and coverage say the same, and rows say what was only measured.
  for (const policy::Rule& rule : outcome.policy.rules) {
    EXPECT_FALSE(rule.min_bytes <= 23000 && rule.max_bytes >= 23000);
  }
  EXPECT_NE(outcome.policy_text.find("verified: "), std::string::npos);
}

TEST_F(Tuning, TheBorderBetweenTwoConfigurationsIsFoundByMeasuring) {
  plan_.sizes = {4096, 8192};
  options_.samples = 400;
  const TuneOutcome outcome = Tuned([this](const Trial& trial, size_t) {
    const bool small = trial.bytes < 4300;
    const bool right = trial.config.algorithm == (small ? kTree : kRing);
    return Took((trial.config.IsDefault() ? 40e-6 : (right ? 20e-6 : 60e-6)) * Noise());
  });
  EXPECT_EQ(outcome.Tuned(), 2U);
  EXPECT_EQ(RunsAt(outcome, 4096).algorithm, kTree);
  EXPECT_EQ(RunsAt(outcome, 4700).algorithm, kRing) << "one size between is not enough";
}

TEST_F(Tuning, WithoutMeasurementsBetweenARowEndsInAWideGap) {
  options_.between = false;
  const TuneOutcome outcome =
      Tuned([this](const Trial& trial, size_t) { return Took(Truth(trial) * Noise()); });
  EXPECT_EQ(RunsAt(outcome, 4096).algorithm, kTree);
  EXPECT_TRUE(RunsAt(outcome, 8192).IsDefault()) << "a factor of 4 is between 4 and 16 KiB";
}

TEST_F(Tuning, WhoCameSecondIsVerifiedWhereTheWinnerFails) {
  plan_.sizes = {4096};
  const TuneOutcome outcome = Tuned([this](const Trial& trial, size_t) {
    const bool tree = trial.config.algorithm == kTree;
    Measurement measurement =
        Took((trial.config.IsDefault() ? 40e-6 : (tree ? 20e-6 : 25e-6)) * Noise());
    // The final round has three launches.
    if (tree && history_.launched_at.size() > 4) {
      measurement.outcome = dataset::SampleOutcome::kCrash;
    }
    return measurement;
  });
  ASSERT_EQ(outcome.lines.size(), 1U);
  EXPECT_EQ(outcome.lines[0].ending, CallOutcome::kTuned);
  EXPECT_EQ(outcome.lines[0].config.algorithm, kRing);
}

TEST_F(Tuning, AWinnerThatItsNeighboursDoNotShareHasToBeClearlyFaster) {
  plan_.sizes = {4096, 8192, 16384};
  // Ring is a little faster at 8 KiB when it is looked for, and not when it is verified.
  const TuneOutcome outcome = Tuned([this](const Trial& trial, size_t) {
    const bool lucky = trial.bytes == 8192 && history_.launched_at.size() <= 4;
    const double ring = lucky ? 19e-6 : 21e-6;
    const bool tree = trial.config.algorithm == kTree;
    return Took((trial.config.IsDefault() ? 40e-6 : (tree ? 20e-6 : ring)) * Noise());
  });
  ASSERT_EQ(outcome.lines.size(), 3U);
  EXPECT_EQ(outcome.lines[1].config.algorithm, kTree);
  EXPECT_EQ(outcome.policy.rules.size(), 1U);
}

TEST_F(Tuning, LaunchesThatDifferDecideNothing) {
  plan_.sizes = {4096};
  plan_.algorithms = {"tree"};
  const TuneOutcome outcome = Tuned([this](const Trial& trial, size_t) {
    const size_t launch = history_.launched_at.size();
    const double tree = launch <= 4 || launch % 2 == 0 ? 25e-6 : 60e-6;
    return Took((trial.config.IsDefault() ? 40e-6 : tree) * Noise());
  });
  ASSERT_EQ(outcome.lines.size(), 1U);
  EXPECT_EQ(outcome.lines[0].ending, CallOutcome::kNotConfirmed);
  ASSERT_TRUE(outcome.lines[0].check.has_value());
  EXPECT_TRUE(outcome.lines[0].check->launches_differ);
  EXPECT_NE(outcome.lines[0].why.find("launches that"), std::string::npos);
  EXPECT_EQ(outcome.CannotTell(), 1U);
}

// Everything at once, on a machine whose best is known, and on its clock.
TEST(PlayedTuning, CoversTheSizesBetweenWithinTheBudget) {
  PlayedPlan plan;
  plan.operations = {Operation::kAllReduce};
  plan.sizes = "4K:1M:x2";
  plan.budget = 60;
  plan.store = "/dev/shm/diapason_played_" + std::to_string(::getpid()) + ".db";
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "needs /dev/shm";
  const Result<PlayedResult> tuned = PlayTuning({.ranks = 4, .launch_noise = 0.02}, plan);
  std::filesystem::remove(plan.store);
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  const PlayedResult& result = tuned.value();
  EXPECT_GE(result.at_tuned, 0.98);
  EXPECT_GE(result.between, 0.95);
  EXPECT_LT(result.default_between, 0.93) << "there has to be something to gain";
  EXPECT_GE(result.worst_of_default, 0.97) << result.worst_at;
  EXPECT_LE(result.seconds, plan.budget * 1.02);
  EXPECT_EQ(result.outcome.channel_cap, 2) << "the played communicator has two channels";
  for (const TunedCall& line : result.outcome.lines) EXPECT_LE(line.config.channels, 2);
}

TEST(PlayedTuning, KeepsTheBudgetWhereEveryBlockCostsMoreThanItsCalls) {
  // As simulated ranks do: microseconds of calls, a third of a second of work.
  PlayedPlan plan;
  plan.operations = {Operation::kAllReduce};
  plan.sizes = "1K:8M:x2";
  plan.budget = 200;
  plan.block_seconds = 0.3;
  plan.store = "/dev/shm/diapason_played_slow_" + std::to_string(::getpid()) + ".db";
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "needs /dev/shm";
  const Result<PlayedResult> tuned = PlayTuning({.ranks = 4}, plan);
  std::filesystem::remove(plan.store);
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_LE(tuned.value().seconds, plan.budget * 1.03);
  EXPECT_GE(tuned.value().worst_of_default, 0.97) << tuned.value().worst_at;
}

TEST_F(Tuning, SamplesThatRunOutAreNotABudgetThatDoes) {
  options_.samples = 4;
  const TuneOutcome outcome =
      Tuned([this](const Trial& trial, size_t) { return Took(Truth(trial) * Noise()); });
  EXPECT_EQ(outcome.more, "more --samples give it");
  ASSERT_GT(outcome.OutOfTime(), 0U);
  for (const TunedCall& line : outcome.lines) {
    EXPECT_EQ(line.why.find("--budget"), std::string::npos) << line.why;
  }
}

TEST(OutcomeTest, IsUndecidedWhereNothingWasFoundOutForWantOfTime) {
  TuneOutcome outcome;
  outcome.lines.resize(2);
  EXPECT_FALSE(outcome.Undecided()) << "nothing better is an answer";
  outcome.lines[0].no_time = true;
  EXPECT_FALSE(outcome.Undecided());
  outcome.lines[1].no_time = true;
  EXPECT_TRUE(outcome.Undecided());
  EXPECT_EQ(outcome.OutOfTime(), 2U);
  outcome.lines[1].ending = CallOutcome::kTuned;
  EXPECT_FALSE(outcome.Undecided());
  EXPECT_EQ(outcome.OutOfTime(), 1U);
  outcome.lines[0].no_time = false;
  EXPECT_EQ(outcome.OutOfTime(), 0U);
  outcome.lines[0].untried = 3;
  EXPECT_EQ(outcome.OutOfTime(), 1U) << "what was not tried is not nothing to gain";
}

TEST(PlayedTuning, SaysWhatItHadNoTimeToTry) {
  PlayedPlan plan;
  plan.operations = {Operation::kAllReduce};
  plan.sizes = "4K,1M";
  plan.budget = 20;
  plan.launch_seconds = 1;
  plan.block_seconds = 1;
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "needs /dev/shm";
  plan.store = "/dev/shm/diapason_played_short_" + std::to_string(::getpid()) + ".db";
  const Result<PlayedResult> tuned = PlayTuning({.ranks = 4}, plan);
  std::filesystem::remove(plan.store);
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_GT(tuned.value().outcome.OutOfTime(), 0U);
}

}  // namespace
}  // namespace diapason::tune
