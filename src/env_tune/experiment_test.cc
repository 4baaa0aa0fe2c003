#include "env_tune/experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/random.h"

namespace diapason::env_tune {
namespace {

RunFigure Fine(double value, double cpu = 1, double memory = 1e6) {
  return {true, value, cpu, memory, ""};
}
RunFigure Bad(const std::string& why) { return {false, 0, 0, 0, why}; }

using World = std::function<RunFigure(const Step& step, int run)>;

// Runs an experiment to its end in a made-up world.
void Play(Experiment* experiment, const World& world) {
  for (int run = 0; run < 5000; ++run) {
    const std::optional<Step> step = experiment->Next();
    if (!step) return;
    experiment->Tell(world(*step, run));
  }
  FAIL() << "it does not end";
}

double Noisy(int run, double deviation) {
  return std::exp(deviation * CounterRandom(5, 1).Normal(static_cast<uint64_t>(run)));
}

std::vector<KnobValue> Three() { return {{"A", "1", ""}, {"B", "1", ""}, {"C", "1", ""}}; }

TEST(Experiment, FindsThePlantedSettingAndOnlyThat) {
  Experiment experiment({}, Three());
  Play(&experiment, [](const Step& step, int run) {
    return Fine(10 * Noisy(run, 0.01) * (step.settings.count("B") > 0 ? 0.8 : 1.0));
  });
  EXPECT_EQ(experiment.Final(), (EnvVars{{"B", "1"}}));
  EXPECT_EQ(experiment.comparisons()[0].verdict, KnobVerdict::kNoGain);
  EXPECT_EQ(experiment.comparisons()[1].verdict, KnobVerdict::kKept);
  EXPECT_NEAR(std::exp(experiment.validation().shift.estimate), 1.25, 0.02);
  EXPECT_TRUE(experiment.validation().stable());
  // Later ones are compared with it in place.
  EXPECT_EQ(experiment.comparisons()[2].against, (EnvVars{{"B", "1"}}));
}

TEST(Experiment, HigherIsBetterWhenSaid) {
  ExperimentOptions options;
  options.higher = true;
  Experiment experiment(options, {{"A", "1", ""}, {"A", "2", ""}});
  Play(&experiment, [](const Step& step, int run) {
    const auto a = step.settings.find("A");
    const double factor = a == step.settings.end() ? 1 : a->second == "1" ? 0.7 : 1.5;
    return Fine(100 * factor * Noisy(run, 0.01));
  });
  EXPECT_EQ(experiment.Final(), (EnvVars{{"A", "2"}}));
}

TEST(Experiment, ABetterValueOfAKeptVariableTakesItsPlace) {
  Experiment experiment({}, {{"A", "1", ""}, {"A", "2", ""}});
  Play(&experiment, [](const Step& step, int run) {
    const auto a = step.settings.find("A");
    const double factor = a == step.settings.end() ? 1 : a->second == "1" ? 0.9 : 0.7;
    return Fine(factor * Noisy(run, 0.01));
  });
  EXPECT_EQ(experiment.Final(), (EnvVars{{"A", "2"}}));
  EXPECT_EQ(experiment.comparisons()[1].against, (EnvVars{{"A", "1"}}));
  // The share of the first, which was kept, went on to the second.
  EXPECT_DOUBLE_EQ(experiment.comparisons()[0].alpha, 0.025);
  EXPECT_DOUBLE_EQ(experiment.comparisons()[1].alpha, 0.05);
}

TEST(Experiment, SaysNoGainWhereThereIsNone) {
  Experiment experiment({}, Three());
  Play(&experiment, [](const Step&, int run) { return Fine(Noisy(run, 0.03)); });
  EXPECT_TRUE(experiment.Final().empty());
  EXPECT_TRUE(experiment.kept().empty());
  EXPECT_LT(experiment.runs(), 5 + 3 * 32);
  // Figures that never change are no gain either.
  Experiment constant({}, Three());
  Play(&constant, [](const Step&, int) { return Fine(7); });
  EXPECT_TRUE(constant.kept().empty());
}

TEST(Experiment, AGainBelowTheLeastIsNotKept) {
  ExperimentOptions options;
  options.min_gain = 0.05;
  Experiment experiment(options, {{"A", "1", ""}});
  Play(&experiment, [](const Step& step, int run) {
    return Fine(Noisy(run, 0.001) * (step.settings.empty() ? 1.0 : 0.98));
  });
  EXPECT_TRUE(experiment.kept().empty());
  EXPECT_NE(experiment.comparisons()[0].verdict, KnobVerdict::kKept);
}

TEST(Experiment, ASettingThatFailsIsGivenUp) {
  Experiment experiment({}, Three());
  Play(&experiment, [](const Step& step, int run) {
    if (step.settings.count("A") > 0) return Bad("it hung");
    return Fine(Noisy(run, 0.01) * (step.settings.count("C") > 0 ? 0.5 : 1.0));
  });
  EXPECT_EQ(experiment.comparisons()[0].verdict, KnobVerdict::kFailed);
  EXPECT_EQ(experiment.comparisons()[0].why, "it hung");
  EXPECT_EQ(experiment.Final(), (EnvVars{{"C", "1"}}));
}

TEST(Experiment, ABaselineThatFailsStopsEverything) {
  Experiment experiment({}, Three());
  experiment.Tell(Bad("no such file"));
  EXPECT_EQ(experiment.broken(), "no such file");
  EXPECT_FALSE(experiment.Next().has_value());
}

TEST(Experiment, ADefaultThatFailsNowAndThenIsTriedAgainButNotForEver) {
  Experiment flaky({}, {{"A", "1", ""}});
  bool failed = false;
  Play(&flaky, [&failed](const Step& step, int run) {
    if (step.phase == ExperimentPhase::kCompare && !step.treated && !failed) {
      failed = true;
      return Bad("once");
    }
    return Fine(Noisy(run, 0.01) * (step.treated ? 0.8 : 1.0));
  });
  EXPECT_EQ(flaky.Final(), (EnvVars{{"A", "1"}}));
  Experiment dead({}, {{"A", "1", ""}});
  Play(&dead, [](const Step& step, int run) {
    return step.phase == ExperimentPhase::kCompare && !step.treated ? Bad("gone")
                                                                    : Fine(Noisy(run, 0.01));
  });
  EXPECT_NE(dead.broken().find("gone"), std::string::npos);
}

TEST(Experiment, LimitsOnCpuAndMemoryRefuse) {
  ExperimentOptions options;
  options.max_cpu = {CostLimit::Kind::kRelative, 0.1};
  options.max_memory = {CostLimit::Kind::kAbsolute, 2e6};
  Experiment experiment(options, Three());
  Play(&experiment, [](const Step& step, int run) {
    const bool a = step.settings.count("A") > 0;
    const bool b = step.settings.count("B") > 0;
    const bool c = step.settings.count("C") > 0;
    return Fine(Noisy(run, 0.01) * (a || b ? 0.5 : 1.0) * (c ? 0.7 : 1.0), a ? 1.5 : 1,
                b ? 3e6 : 1e6);
  });
  EXPECT_EQ(experiment.comparisons()[0].verdict, KnobVerdict::kTooCostly);
  EXPECT_EQ(experiment.comparisons()[1].verdict, KnobVerdict::kTooCostly);
  EXPECT_EQ(experiment.Final(), (EnvVars{{"C", "1"}}));
}

TEST(Experiment, WhatIsNotConfirmedIsNotClaimed) {
  // The setting helps while it is compared, and no more when it is validated.
  Experiment experiment({}, {{"A", "1", ""}});
  Play(&experiment, [](const Step& step, int run) {
    const bool helps = step.treated && step.phase == ExperimentPhase::kCompare;
    return Fine(Noisy(run, 0.01) * (helps ? 0.8 : 1.0));
  });
  EXPECT_EQ(experiment.kept(), (EnvVars{{"A", "1"}}));
  EXPECT_TRUE(experiment.validation().complete);
  EXPECT_FALSE(experiment.validation().confirmed);
  EXPECT_TRUE(experiment.Final().empty());
}

TEST(Experiment, TheBudgetGoesOnToTheValidation) {
  Experiment experiment({}, Three());
  Play(&experiment, [&experiment](const Step& step, int run) {
    if (step.phase == ExperimentPhase::kCompare && step.candidate == 1) {
      // Told before the run's result, as by a driver whose time is up.
      experiment.StopComparing();
      return Fine(Noisy(run, 0.01));
    }
    return Fine(Noisy(run, 0.01) * (step.settings.count("A") > 0 ? 0.6 : 1.0));
  });
  EXPECT_EQ(experiment.comparisons()[2].verdict, KnobVerdict::kNotTried);
  EXPECT_EQ(experiment.kept(), (EnvVars{{"A", "1"}}));
}

TEST(Experiment, SeesTunedRunsThatBecomeSlower) {
  Experiment experiment({}, {{"A", "1", ""}});
  Play(&experiment, [](const Step& step, int run) {
    double value = Noisy(run, 0.01) * (step.treated ? 0.5 : 1.0);
    if (step.phase == ExperimentPhase::kValidate && step.treated) value *= 1 + 0.04 * step.block;
    return Fine(value);
  });
  EXPECT_TRUE(experiment.validation().confirmed);
  EXPECT_TRUE(experiment.validation().drifts);
  EXPECT_FALSE(experiment.validation().stable());
}

TEST(Experiment, TheSameResultsGiveTheSameStepsAndOrdersAreBalanced) {
  for (const bool abba : {false, true}) {
    ExperimentOptions options;
    options.abba = abba;
    Experiment one(options, Three());
    Experiment two(options, Three());
    int treated_first = 0;
    int blocks = 0;
    int left = one.MostRunsLeft();
    for (int run = 0; run < 400; ++run) {
      const std::optional<Step> a = one.Next();
      const std::optional<Step> b = two.Next();
      ASSERT_EQ(a.has_value(), b.has_value());
      if (!a) break;
      EXPECT_EQ(a->treated, b->treated);
      EXPECT_EQ(a->settings, b->settings);
      if (a->slot == 0 && a->phase == ExperimentPhase::kCompare) {
        ++blocks;
        treated_first += a->treated ? 1 : 0;
      }
      const RunFigure figure = Fine(Noisy(run, 0.02));
      one.Tell(figure);
      two.Tell(figure);
      EXPECT_LT(one.MostRunsLeft(), left);
      left = one.MostRunsLeft();
    }
    EXPECT_GT(treated_first, 0);
    EXPECT_LT(treated_first, blocks);
  }
}

// The claim of the header, small: bench/env_tune.cc does it in full.
TEST(Experiment, NullTuningsSeldomKeepAnything) {
  int kept = 0;
  int claimed = 0;
  constexpr int kTunings = 200;
  for (uint64_t t = 0; t < kTunings; ++t) {
    ExperimentOptions options;
    options.seed = t;
    Experiment experiment(options, Three());
    const CounterRandom random(99, t);
    double drift = 0;
    Play(&experiment, [&](const Step&, int run) {
      drift = 0.9 * drift + 0.02 * random.Normal(static_cast<uint64_t>(run));
      return Fine(std::exp(drift));
    });
    kept += experiment.kept().empty() ? 0 : 1;
    claimed += experiment.Final().empty() ? 0 : 1;
  }
  EXPECT_LE(kept, kTunings / 10);
  EXPECT_LE(claimed, kTunings / 20);
}

}  // namespace
}  // namespace diapason::env_tune
