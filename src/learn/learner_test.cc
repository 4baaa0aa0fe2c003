#include "learn/learner.h"

#include <gtest/gtest.h>

#include "learn/testing.h"

namespace diapason::learn {
namespace {

constexpr Strategy kAll[] = {Strategy::kElimination, Strategy::kEpsilon, Strategy::kThompson};

LearnOptions Seeded(uint64_t seed, Strategy strategy = Strategy::kElimination) {
  LearnOptions options;
  options.seed = seed;
  options.strategy = strategy;
  return options;
}

// Up to eleven arms of 0.6 to 3 times the default's time, some with an estimate.
Truth RandomTruth(uint64_t seed) {
  const CounterRandom random(seed, 7);
  Truth truth;
  const uint64_t arms = 1 + random.Bits(0) % 11;
  for (uint64_t i = 1; i <= arms; ++i) {
    const double ratio = 0.6 * std::pow(5.0, random.Uniform(3 * i));
    const bool guessed = random.Uniform(3 * i + 1) < 0.5;
    truth.Add(ratio, guessed ? ratio * std::exp2(1 - 2 * random.Uniform(3 * i + 2)) : 0);
  }
  truth.sigma = 0.01 + 0.15 * random.Uniform(1);
  truth.spikes = 0.02;
  return truth;
}

TEST(Strategy, NamesAreReadBack) {
  for (const Strategy strategy : kAll) {
    const auto read = ParseStrategy(StrategyName(strategy));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read.value(), strategy);
  }
  const auto unknown = ParseStrategy("elimnation");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.status().message().find("'elimination'"), std::string::npos);
}

TEST(Learner, SchedulesAreAlwaysValid) {
  for (const Strategy strategy : kAll) {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      LearnOptions options = Seeded(seed, strategy);
      options.unit = seed % 3 == 0 ? 7 : 1;
      Job job(options, RandomTruth(seed));
      job.late = static_cast<uint32_t>(seed % 4);
      job.share_lost = seed % 5 == 0 ? 0.2 : 0;
      job.share_missing = seed % 7 == 0 ? 0.2 : 0;
      job.on_schedule = [&](const Schedule& schedule) {
        ASSERT_FALSE(schedule.segments.empty());
        ASSERT_LE(schedule.segments.size(), kMostSegments);
        EXPECT_EQ(schedule.incumbent, job.learner->best());
        for (const Segment& segment : schedule.segments) {
          EXPECT_GT(segment.calls, 0u);
          EXPECT_EQ(segment.calls % options.unit, 0u);
          EXPECT_NE(job.truth.ArmOf(segment.config), SIZE_MAX);
        }
        const auto read = ParseSchedule(ScheduleText(schedule));
        ASSERT_TRUE(read.ok());
        EXPECT_EQ(read.value(), schedule);
      };
      job.RunFor(3000);
    }
  }
}

TEST(Learner, ABlockAfterAnotherConfigurationIsLongerByItsLeadIn) {
  for (const uint64_t lead_in : {uint64_t{0}, uint64_t{1}, uint64_t{3}}) {
    LearnOptions options = Seeded(1);
    options.lead_in = lead_in;
    Truth truth;
    truth.Add(0.8, 1.0);
    const auto learner = MakeLearner(options, {}, truth.Candidates());
    const Schedule schedule = learner->Next(2);
    ASSERT_GE(schedule.segments.size(), 3u);
    // The default runs before: its first block needs none.
    const uint64_t block = schedule.segments.front().calls;
    EXPECT_TRUE(schedule.segments.front().config.IsDefault());
    EXPECT_EQ(schedule.segments.back().calls, block + lead_in);
    EXPECT_TRUE(schedule.segments.back().config.IsDefault());
  }
}

TEST(Learner, IsDeterministic) {
  for (const Strategy strategy : kAll) {
    Job one(Seeded(5, strategy), RandomTruth(5));
    Job two(Seeded(5, strategy), RandomTruth(5));
    for (int i = 0; i < 60; ++i) ASSERT_EQ(one.Step(), two.Step()) << i;
    EXPECT_EQ(one.learner->lost_share(), two.learner->lost_share());
  }
}

TEST(Learner, StaysWithinTheBudget) {
  for (const Strategy strategy : kAll) {
    int beyond = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      Job job(Seeded(seed, strategy), RandomTruth(seed));
      job.late = static_cast<uint32_t>(seed % 3);
      job.RunFor(2000);
      EXPECT_LE(job.most_lost_share, 0.03) << StrategyName(strategy) << " " << seed;
      // The truth, which it cannot know exactly.
      const double share = job.lost / static_cast<double>(std::max<uint64_t>(job.calls, 1000));
      EXPECT_LE(share, 0.04) << seed;
      beyond += share > 0.03 ? 1 : 0;
    }
    EXPECT_LE(beyond, 4) << StrategyName(strategy);
  }
}

TEST(Learner, TriesNothingWithoutABudget) {
  for (const Strategy strategy : kAll) {
    LearnOptions options = Seeded(1, strategy);
    options.budget = 0;
    Job job(options, RandomTruth(1));
    job.RunFor(2000);
    EXPECT_EQ(job.calls_of.size(), 1u);
    EXPECT_EQ(job.learner->lost_share(), 0);
    EXPECT_TRUE(job.learner->best().IsDefault());
  }
}

TEST(Learner, WithoutCandidatesTheDefaultRuns) {
  for (const Strategy strategy : kAll) {
    Job job(Seeded(1, strategy), Truth());
    job.RunFor(1000);
    EXPECT_TRUE(job.learner->best().IsDefault());
    ASSERT_EQ(job.learner->Summary().size(), 1u);
  }
}

TEST(Elimination, NoiseAloneChangesNothing) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Truth truth;
    for (int i = 0; i < 8; ++i) truth.Add(1);
    truth.sigma = seed % 2 == 0 ? 0.05 : 0.15;
    truth.spikes = 0.01;
    Job job(Seeded(seed), truth);
    job.RunFor(1000);
    changed += job.learner->best().IsDefault() ? 0 : 1;
  }
  EXPECT_LE(changed, 20);
}

TEST(Elimination, RarelyChoosesAWorseArm) {
  int worse = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Truth truth;
    for (const double ratio : {1.03, 1.04, 1.05, 1.1, 1.2}) truth.Add(ratio);
    truth.sigma = 0.1;
    Job job(Seeded(seed), truth);
    job.RunFor(1000);
    worse += job.Chosen() > 1.02 ? 1 : 0;
  }
  EXPECT_LE(worse, 4);
}

TEST(Elimination, FindsAFasterArm) {
  for (const Strategy strategy : kAll) {
    int found = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      Truth truth;
      for (const double ratio : {1.4, 1.0, 1 / 1.3, 2.2, 0.98, 1.1}) truth.Add(ratio);
      Job job(Seeded(seed, strategy), truth);
      job.RunFor(strategy == Strategy::kElimination ? 200 : 1000);
      found += job.Chosen() < 0.8 ? 1 : 0;
    }
    EXPECT_GE(found, 97) << StrategyName(strategy);
  }
}

TEST(Elimination, AHopelessArmIsStoppedAfterFewCalls) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Truth truth;
    truth.Add(0.9);
    truth.Add(3);
    Job job(Seeded(seed), truth);
    job.RunFor(5000);
    EXPECT_LE(job.calls_of[2], 6u) << seed;
    for (const ArmSummary& arm : job.learner->Summary()) {
      EXPECT_EQ(arm.dropped, arm.config == Truth::ConfigOf(2));
    }
  }
}

TEST(Elimination, AnArmTheLibraryThinksFarSlowerComesLast) {
  Truth truth;
  truth.Add(0.95, 1.1);
  truth.Add(20, 20);
  Job job(Seeded(1), truth);
  job.RunFor(1000);
  EXPECT_GT(job.calls_of[1], 0u);
  EXPECT_EQ(job.calls_of[2], 0u);
}

TEST(Elimination, FirstUsesDoNotCount) {
  Truth truth;
  truth.Add(0.9, 1);
  truth.Add(0.9, 1);
  Job job(Seeded(1), truth);
  std::map<int, bool> seen;
  job.on_schedule = [&](const Schedule& schedule) {
    for (const Segment& segment : schedule.segments) {
      if (segment.config.IsDefault()) continue;
      const bool first = !seen[segment.config.algorithm];
      EXPECT_EQ(segment.counts, !first);
      const bool tried = segment.config != schedule.incumbent;
      EXPECT_LE(segment.calls, first ? 2u : tried ? 12u : UINT64_MAX);
      seen[segment.config.algorithm] = true;
    }
  };
  job.RunFor(200);
  EXPECT_EQ(seen.size(), 2u);
}

TEST(Elimination, DriftOfTheWholeMachineIsNoDifference) {
  // Everything becomes slower from epoch to epoch; the arms stay as they are.
  int changed = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Truth truth;
    for (int i = 0; i < 4; ++i) truth.Add(1);
    const auto learner = MakeLearner(Seeded(seed), {}, truth.Candidates());
    const CounterRandom random(seed, 3);
    uint64_t draw = 0;
    double speed = 1;
    for (uint32_t epoch = 2; epoch < 80; ++epoch) {
      speed *= 1.2;
      std::vector<SegmentResult> results;
      for (const Segment& segment : learner->Next(epoch).segments) {
        const double time = 1e-6 * speed * std::exp(0.02 * random.Normal(draw++));
        results.push_back({time, static_cast<uint32_t>(std::min<uint64_t>(segment.calls, 8))});
      }
      learner->Learn(epoch, results);
    }
    changed += learner->best().IsDefault() ? 0 : 1;
  }
  EXPECT_LE(changed, 5);
}

TEST(Elimination, WaitsForWhatItHasScheduled) {
  Truth truth;
  for (int i = 0; i < 11; ++i) truth.Add(1.1);
  LearnOptions options = Seeded(1);
  options.budget = 1;
  const auto learner = MakeLearner(options, {}, truth.Candidates());
  int exploring = 0;
  for (uint32_t epoch = 2; epoch < 14; ++epoch)
    exploring += learner->Next(epoch).Explores() ? 1 : 0;
  EXPECT_LE(exploring, 2);
}

TEST(Elimination, GoesOnWithoutResultsThatNeverCome) {
  Truth truth;
  truth.Add(0.7);
  truth.Add(1.2);
  Job job(Seeded(3), truth);
  job.share_missing = 0.5;
  job.share_lost = 0.2;
  job.late = 3;
  job.RunFor(20000);
  EXPECT_LT(job.Chosen(), 0.8);
  EXPECT_LE(job.most_lost_share, 0.03);
}

TEST(Elimination, StrangeResultsAreNoResults) {
  Truth truth;
  truth.Add(0.7);
  const auto learner = MakeLearner(Seeded(1), {}, truth.Candidates());
  const Schedule first = learner->Next(2);
  const size_t segments = first.segments.size();
  learner->Learn(7, {});                                                // never scheduled
  learner->Learn(2, std::vector<SegmentResult>(segments + 1, {1, 1}));  // of something else
  learner->Learn(2, std::vector<SegmentResult>(segments, {NAN, 3}));
  learner->Learn(2, std::vector<SegmentResult>(segments, {1e-4, 3}));  // a second time
  for (uint32_t epoch = 3; epoch < 100; ++epoch) {
    const size_t size = learner->Next(epoch).segments.size();
    const SegmentResult strange[] = {{0, 0}, {-1, 3}, {HUGE_VAL, 3}, {1e-4, 0}, {0, 5}};
    learner->Learn(epoch, std::vector<SegmentResult>(size, strange[epoch % 5]));
  }
  EXPECT_TRUE(learner->best().IsDefault());
  EXPECT_EQ(learner->Summary()[1].samples, 0u);
  EXPECT_LE(learner->lost_share(), 0.03);
}

TEST(Elimination, ResultsMayComeOutOfOrder) {
  Truth truth;
  truth.Add(0.7, 1);
  truth.Add(1.3, 1.2);
  const auto learner = MakeLearner(Seeded(1), {}, truth.Candidates());
  std::map<uint32_t, std::vector<SegmentResult>> results;
  uint32_t epoch = 2;
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 3; ++i, epoch += 2) {  // numbers are left out
      for (const Segment& segment : learner->Next(epoch).segments) {
        const double time = 1e-4 * truth.ratios[truth.ArmOf(segment.config)];
        results[epoch].push_back({time, static_cast<uint32_t>(segment.counts ? 3 : 0)});
      }
    }
    for (auto place = results.rbegin(); place != results.rend(); ++place) {
      learner->Learn(place->first, place->second);
    }
    results.clear();
  }
  EXPECT_EQ(learner->best(), Truth::ConfigOf(1));
  EXPECT_NEAR(learner->Summary()[1].ratio, 0.7, 0.01);
}

TEST(Elimination, SettlesForLongerAndLonger) {
  Truth truth;
  truth.Add(0.8);
  truth.Add(1.3);
  Job job(Seeded(2), truth);
  uint64_t longest = 0;
  job.on_schedule = [&](const Schedule& schedule) {
    if (!schedule.Explores()) longest = std::max(longest, schedule.Calls());
  };
  job.RunFor(300);
  EXPECT_TRUE(job.learner->settled());
  job.RunFor(1000000);
  EXPECT_EQ(longest, 1u << 16);
  EXPECT_EQ(job.learner->best(), Truth::ConfigOf(1));
  EXPECT_LT(job.lost / static_cast<double>(job.calls), 0.001);
}

TEST(Elimination, ANewArmIsTriedAfterSettling) {
  Truth truth;
  truth.Add(1.2);
  Job job(Seeded(4), truth);
  job.RunFor(500);
  ASSERT_TRUE(job.learner->settled());
  const uint64_t before = job.calls_of[1];
  job.truth.Add(0.7);
  job.learner->Add({Truth::ConfigOf(2), 0});
  job.learner->Add({Truth::ConfigOf(2), 0});  // known already
  job.RunFor(2000);
  EXPECT_EQ(job.learner->best(), Truth::ConfigOf(2));
  EXPECT_EQ(job.learner->Summary().size(), 3u);
  EXPECT_LE(job.calls_of[1], before + 12);
  EXPECT_LE(job.most_lost_share, 0.03);
}

TEST(Elimination, DriftReopensAtABoundedRate) {
  Truth truth;
  truth.Add(0.7);
  truth.Add(1.1);
  Job job(Seeded(6), truth);
  job.RunFor(2000);
  ASSERT_EQ(job.learner->best(), Truth::ConfigOf(1));
  job.truth.ratios = {1, 1.4, 0.8};
  job.RunFor(30000);
  EXPECT_EQ(job.learner->best(), Truth::ConfigOf(2));

  // A machine that never comes to rest costs no more than the budget.
  for (int i = 0; i < 200; ++i) {
    std::swap(job.truth.ratios[1], job.truth.ratios[2]);
    job.RunFor(500);
  }
  EXPECT_LE(job.most_lost_share, 0.03);
}

TEST(Elimination, DriftGivesDroppedArmsAnotherChance) {
  Truth truth;
  truth.Add(0.7);
  truth.Add(1.3);
  Job job(Seeded(6), truth);
  job.RunFor(2000);
  ASSERT_EQ(job.learner->best(), Truth::ConfigOf(1));
  // Nothing but a probe can see it: the arm that runs is still faster than the default.
  job.truth.ratios = {1, 0.9, 0.5};
  job.RunFor(100000);
  EXPECT_EQ(job.learner->best(), Truth::ConfigOf(2));

  // A machine that changes with every probe is tried again once in ten probes at most.
  int probes = 0;
  int reopened = 0;
  for (int i = 0; i < 400; ++i) {
    const bool before = job.learner->settled();
    const bool explores = job.Step().Explores();
    if (before && explores && job.learner->settled()) {
      ++probes;
      job.truth.ratios = {1, probes % 6 < 3 ? 0.9 : 0.5, probes % 6 < 3 ? 0.5 : 0.9};
    }
    if (before && !job.learner->settled()) ++reopened;
  }
  EXPECT_GT(probes, 20);
  EXPECT_LE(reopened, 1 + probes / 5);  // once by a reopening, once where the data ask for it
}

TEST(Elimination, FewerChannelsOfOnePairAreTriedOneByOne) {
  // Every halving doubles the time; the library says nothing about channels.
  const std::vector<double> times = {1.05, 2.1, 4.2, 8.4, 16.8};
  std::vector<ArmConfig> candidates;
  for (int i = 0; i < 5; ++i) candidates.push_back({{1, 2, 32 >> i, 0}, i == 0 ? 1.0 : 0});
  const auto learner = MakeLearner(Seeded(1), {}, candidates);
  double lost = 0;
  double calls = 32;
  for (uint32_t epoch = 2; epoch < 60; ++epoch) {
    std::vector<SegmentResult> results;
    for (const Segment& segment : learner->Next(epoch).segments) {
      double ratio = 1;
      for (size_t i = 0; i < 5; ++i)
        ratio = segment.config == candidates[i].config ? times[i] : ratio;
      calls += static_cast<double>(segment.calls);
      lost += (ratio - 1) * static_cast<double>(segment.calls);
      results.push_back({1e-4 * ratio, static_cast<uint32_t>(segment.counts ? 2 : 0)});
    }
    learner->Learn(epoch, results);
    EXPECT_LE(lost, 0.03 * std::max(calls, 1000.0));
  }
}

TEST(Elimination, AStableMachineDoesNotReopen) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Truth truth;
    truth.Add(0.8);
    truth.Add(1.02);
    truth.Add(1.3);
    truth.sigma = 0.08;
    truth.spikes = 0.02;
    Job job(Seeded(seed), truth);
    job.RunFor(2000);
    const uint64_t before = job.calls_of[3];
    job.RunFor(500000);
    EXPECT_LE(job.calls_of[3], before + 6) << seed;
  }
}

TEST(Elimination, AnIncumbentMustKeepBeatingTheDefault) {
  Truth truth;
  truth.Add(0.8);
  truth.Add(1.1);
  Job good(Seeded(1), truth, Truth::ConfigOf(1));
  EXPECT_EQ(good.learner->best(), Truth::ConfigOf(1));
  good.RunFor(1000);
  EXPECT_EQ(good.learner->best(), Truth::ConfigOf(1));
  Job bad(Seeded(1), truth, Truth::ConfigOf(2));
  EXPECT_EQ(bad.learner->best(), Truth::ConfigOf(2));
  bad.RunFor(1000);
  EXPECT_EQ(bad.learner->best(), Truth::ConfigOf(1));
  Truth alone;
  alone.Add(1.1);
  Job worse(Seeded(1), alone, Truth::ConfigOf(1));
  worse.RunFor(1000);
  EXPECT_TRUE(worse.learner->best().IsDefault());
}

TEST(Elimination, LearnsFromIterations) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    LearnOptions options = Seeded(seed);
    options.unit = 40;
    Truth truth;
    for (const double ratio : {1.05, 0.85, 1.2}) truth.Add(ratio);
    truth.sigma = 0.04;
    Job job(options, truth);
    job.RunFor(40 * 600);
    found += job.Chosen() < 0.9 ? 1 : 0;
    EXPECT_LE(job.most_lost_share, 0.03);
  }
  EXPECT_GE(found, 48);
}

TEST(Learner, SummaryHasTheDefaultFirstThenByRatio) {
  Truth truth;
  for (const double ratio : {1.2, 0.8, 1.02}) truth.Add(ratio);
  Job job(Seeded(1), truth);
  job.RunFor(600);
  const auto summary = job.learner->Summary();
  ASSERT_EQ(summary.size(), 4u);
  EXPECT_TRUE(summary[0].config.IsDefault());
  EXPECT_EQ(summary[0].ratio, 1);
  EXPECT_NEAR(summary[0].seconds, 1e-4, 1e-5);
  EXPECT_EQ(summary[1].config, Truth::ConfigOf(2));
  EXPECT_LE(summary[1].low, summary[1].ratio);
  EXPECT_LT(summary[1].high, 1);
  EXPECT_GT(summary[1].samples, 0u);
  EXPECT_LE(summary[2].ratio, summary[3].ratio);
}

TEST(Learner, HostileOptionsDoNoHarm) {
  for (const Strategy strategy : kAll) {
    LearnOptions options = Seeded(1, strategy);
    options.margin = 7;
    options.confidence = NAN;
    options.budget = 1e9;
    options.epsilon = -3;
    options.horizon = 0;
    options.unit = 0;
    Truth truth;
    truth.Add(0.7, NAN);
    truth.Add(0.9, -1);
    truth.Add(0.9, HUGE_VAL);
    const auto learner = MakeLearner(options, {}, truth.Candidates());
    for (uint32_t epoch = 2; epoch < 60; ++epoch) {
      const Schedule schedule = learner->Next(epoch);
      ASSERT_FALSE(schedule.segments.empty());
      for (const Segment& segment : schedule.segments) ASSERT_GT(segment.calls, 0u);
      learner->Learn(epoch, std::vector<SegmentResult>(schedule.segments.size(), {1e-4, 2}));
      EXPECT_TRUE(std::isfinite(learner->lost_share()));
    }
  }
}

}  // namespace
}  // namespace diapason::learn
