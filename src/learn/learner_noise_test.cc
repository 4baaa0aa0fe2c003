// How schedules follow the noise of the calls and the time that proposals take.
#include <gtest/gtest.h>

#include <algorithm>

#include "learn/learner.h"
#include "learn/testing.h"

namespace diapason::learn {
namespace {

LearnOptions Seeded(uint64_t seed) {
  LearnOptions options;
  options.seed = seed;
  return options;
}

// The longest block of a candidate, and the calls until the context is settled, over some runs.
struct Lengths {
  uint64_t longest = 0;
  uint64_t calls = 0;
};
Lengths RunWithNoise(double sigma) {
  Lengths lengths;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Truth truth;
    for (int i = 0; i < 3; ++i) truth.Add(0.97 + 0.01 * i, 1.1);
    truth.sigma = sigma;
    Job job(Seeded(seed), truth);
    job.on_schedule = [&](const Schedule& schedule) {
      if (!schedule.Explores() || job.learner->settled()) return;
      for (const Segment& segment : schedule.segments) {
        if (segment.config == schedule.incumbent || !segment.counts) continue;
        lengths.longest = std::max(lengths.longest, segment.calls);
      }
    };
    while (!job.learner->settled() && job.calls < 20000) job.Step();
    lengths.calls += job.calls;
  }
  return lengths;
}

TEST(EliminationByNoise, NoisyCallsGetLongerBlocksAndMoreOfThem) {
  const Lengths quiet = RunWithNoise(0.03);
  const Lengths noisy = RunWithNoise(0.2);
  EXPECT_GE(noisy.longest, 6u);
  EXPECT_LE(noisy.longest, 12u);
  EXPECT_GT(noisy.calls, 2 * quiet.calls);
}

TEST(EliminationByNoise, SmallDifferencesAreFoundInNoisyCalls) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Truth truth;
    truth.Add(0.85, 1.1);
    truth.Add(0.80, 1.2);
    truth.sigma = 0.15;
    Job job(Seeded(seed), truth);
    job.RunFor(3000);
    found += job.Chosen() < 0.82 ? 1 : 0;
  }
  EXPECT_GE(found, 36) << "of 40";
}

// Of 200 runs, how many end with something else than the default.
int Changed(const Truth& truth, uint64_t calls) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Job job(Seeded(seed), truth);
    job.RunFor(calls);
    changed += job.learner->best().IsDefault() ? 0 : 1;
  }
  return changed;
}

TEST(EliminationByNoise, ManyLooksDoNotHideAClearGain) {
  Truth truth;
  truth.Add(0.9, 1.1);
  for (int i = 0; i < 8; ++i) truth.Add(1 + 0.01 * i, 1.1);
  truth.sigma = 0.2;
  EXPECT_GE(Changed(truth, 1000), 140) << "of 200";
}

TEST(EliminationByNoise, TiesAreRarelyTakenForGains) {
  Truth truth;
  for (int i = 0; i < 9; ++i) truth.Add(1, 1.1);
  truth.sigma = 0.2;
  EXPECT_LE(Changed(truth, 1000), 10) << "of 200";
}

TEST(EliminationByNoise, LookingForDriftCostsNothingMeasurable) {
  Truth truth;
  truth.Add(0.7, 1.1);
  truth.Add(0.9, 1.2);
  Job job(Seeded(3), truth);
  while (!job.learner->settled()) job.Step();
  job.RunFor(2000);
  const double lost = job.lost;
  const uint64_t calls = job.calls;
  uint64_t probes = 0;
  job.on_schedule = [&](const Schedule& schedule) { probes += schedule.Explores() ? 1 : 0; };
  job.RunFor(200000);
  EXPECT_GE(probes, 4u) << "it still looks";
  EXPECT_LT((job.lost - lost) / static_cast<double>(job.calls - calls), 1e-3);
}

TEST(Learner, WaitsAtLeastAsLongAsAProposalTakes) {
  for (const uint64_t lead : {uint64_t{0}, uint64_t{40}}) {
    Truth truth;
    truth.Add(0.8, 1.1);
    const auto learner = MakeLearner(Seeded(1), {}, truth.Candidates());
    learner->SetLead(lead);
    uint64_t shortest = UINT64_MAX;
    for (uint32_t epoch = 2; epoch < 8; ++epoch) {  // no results: it waits for them
      const Schedule schedule = learner->Next(epoch);
      if (!schedule.Explores()) shortest = std::min(shortest, schedule.Calls());
    }
    if (lead == 0) {
      EXPECT_LT(shortest, 10u);
    } else {
      EXPECT_EQ(shortest, lead);
    }
  }
}

}  // namespace
}  // namespace diapason::learn
