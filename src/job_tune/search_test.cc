#include "job_tune/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/random.h"

namespace diapason::job_tune {
namespace {

constexpr Config kRingSimple{kRing, kSimple, 0};
constexpr Config kTreeSimple{kTree, kSimple, 0};
constexpr Config kTreeLl{kTree, kLl, 0};

// A job whose iteration takes a time that depends on the setting, with noise, and that drifts.
class FakeJob {
 public:
  using Truth = std::function<double(const JobSetting&)>;
  FakeJob(Truth truth, double noise, uint64_t seed)
      : truth_(std::move(truth)), noise_(noise), random_(seed, 0) {}

  std::vector<learn::SegmentResult> Run(const std::vector<Search::Trial>& trials) {
    std::vector<learn::SegmentResult> results;
    for (const Search::Trial& trial : trials) {
      drift_ += 0.001 * random_.Normal(++drawn_);
      const double error = noise_ / std::sqrt(static_cast<double>(trial.iterations));
      results.push_back(
          {truth_(trial.setting) * std::exp(drift_ + error * random_.Normal(++drawn_)),
           static_cast<uint32_t>(trial.iterations)});
      iterations += trial.iterations;
    }
    return results;
  }
  uint64_t iterations = 0;

 private:
  const Truth truth_;
  const double noise_;
  const CounterRandom random_;
  uint64_t drawn_ = 0;
  double drift_ = 0;
};

SearchContext ContextOf(int band) {
  SearchContext context;
  context.context = {Library::kNccl, Collective::kAllReduce, band, {1, 4}};
  context.offered = {{kRingSimple, 1}, {kTreeSimple, 1.5}, {kTreeLl, 2}, {{kRing, kLl, 0}, 1.2}};
  context.by_default = {kRing, kSimple, 4};
  return context;
}

void RunToEnd(Search* search, FakeJob* job) {
  for (int i = 0; i < 2000 && !search->over(); ++i) {
    const std::vector<Search::Trial> trials = search->Next();
    if (trials.empty()) break;
    const std::vector<learn::SegmentResult> results = job->Run(trials);
    for (const Search::Trial& trial : trials) {
      for (size_t c = 0; c < trial.setting.size(); ++c) {
        Config ran = trial.setting[c];
        if (ran.IsDefault()) ran = kRingSimple;
        if (ran.channels == 0) ran.channels = 4;
        search->Ran(c, trial.setting[c], ran);
      }
    }
    search->Learn(results);
  }
  EXPECT_TRUE(search->over());
}

TEST(Search, FindsWhatMakesTheIterationFaster) {
  FakeJob job([](const JobSetting& setting) { return setting[0] == kTreeSimple ? 0.007 : 0.010; },
              0.05, 1);
  Search search({ContextOf(15)}, {});
  RunToEnd(&search, &job);
  EXPECT_EQ(search.best()[0], kTreeSimple);
  const std::vector<TriedConfig> tried = search.TriedIn(0);
  ASSERT_FALSE(tried.empty());
  EXPECT_EQ(tried[0].config, kTreeSimple);
  EXPECT_LT(tried[0].low, 0.010 / 0.007);
  EXPECT_GT(tried[0].high, 0.010 / 0.007);
  EXPECT_GT(tried[0].blocks, 0u);
  EXPECT_LT(job.iterations, 5000u);
}

TEST(Search, FindsFewerChannels) {
  FakeJob job(
      [](const JobSetting& setting) {
        return setting[0].channels == 1 && setting[0].algorithm == kRing ? 0.008 : 0.010;
      },
      0.03, 2);
  Search search({ContextOf(20)}, {});
  RunToEnd(&search, &job);
  EXPECT_EQ(search.best()[0], (Config{kRing, kSimple, 1}));
}

TEST(Search, LeavesTheLibraryAloneWhereNothingIsFaster) {
  int changed = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    FakeJob job([](const JobSetting& setting) { return setting[0].IsDefault() ? 0.010 : 0.0102; },
                0.05, seed);
    Search search({ContextOf(15)}, {});
    RunToEnd(&search, &job);
    changed += search.best()[0].IsDefault() ? 0 : 1;
  }
  // Verification in fresh launches comes after it.
  EXPECT_LE(changed, 2);
}

// The second context is searched beside what was found for the first.
TEST(Search, OneContextAfterTheOther) {
  FakeJob job(
      [](const JobSetting& setting) {
        double seconds = 0.010;
        if (setting[0] == kTreeSimple) seconds -= 0.002;
        // Only beside the other one is this faster.
        if (setting[1] == kTreeLl) seconds += setting[0] == kTreeSimple ? -0.001 : 0.001;
        return seconds;
      },
      0.03, 3);
  Search search({ContextOf(15), ContextOf(20)}, {});
  RunToEnd(&search, &job);
  EXPECT_EQ(search.best()[0], kTreeSimple);
  EXPECT_EQ(search.best()[1], kTreeLl);
}

// A launch ends in the middle; what is known survives.
TEST(Search, TrialsMayBeLost) {
  FakeJob job([](const JobSetting& setting) { return setting[0] == kTreeSimple ? 0.007 : 0.010; },
              0.05, 4);
  Search search({ContextOf(15)}, {});
  for (int i = 0; i < 400 && !search.over(); ++i) {
    const std::vector<Search::Trial> trials = search.Next();
    if (trials.empty()) break;
    if (i % 3 == 2) {
      search.Lost();
    } else {
      search.Learn(job.Run(trials));
    }
  }
  EXPECT_TRUE(search.over());
  EXPECT_EQ(search.best()[0], kTreeSimple);
}

TEST(Search, WhatNeverGivesATimeIsGivenUp) {
  FakeJob job([](const JobSetting&) { return 0.010; }, 0.05, 5);
  Search search({ContextOf(15)}, {});
  for (int i = 0; i < 400 && !search.over(); ++i) {
    const std::vector<Search::Trial> trials = search.Next();
    if (trials.empty()) break;
    std::vector<learn::SegmentResult> results = job.Run(trials);
    for (size_t t = 0; t < trials.size(); ++t) {
      if (trials[t].setting[0].algorithm == kTree) results[t] = {};
    }
    search.Learn(results);
  }
  EXPECT_TRUE(search.over());
  EXPECT_TRUE(search.best()[0].IsDefault());
  EXPECT_FALSE(search.gave_up()) << "it ran, and is far slower";
}

// On a busy machine the job follows an order late, or not before the next one.
TEST(Search, WhatRanTooLateIsTriedAgainAndNotCalledSlow) {
  FakeJob job([](const JobSetting& setting) { return setting[0] == kTreeSimple ? 0.007 : 0.010; },
              0.05, 6);
  Search search({ContextOf(15)}, {});
  int late = 0;
  uint64_t longest = 0;
  for (int i = 0; i < 400 && !search.over(); ++i) {
    const std::vector<Search::Trial> trials = search.Next();
    if (trials.empty()) break;
    std::vector<learn::SegmentResult> results = job.Run(trials);
    std::vector<bool> begun(trials.size(), true);
    for (size_t t = 0; t < trials.size(); ++t) {
      if (trials[t].setting[0] != kTreeSimple || late == 5) continue;
      ++late;
      results[t] = {};
      begun[t] = false;
      longest = std::max(longest, trials[t].iterations);
    }
    search.Learn(results, begun);
  }
  EXPECT_TRUE(search.over());
  EXPECT_EQ(late, 5);
  EXPECT_GE(longest, 64u) << "trials become longer";
  EXPECT_EQ(search.best()[0], kTreeSimple);
  EXPECT_FALSE(search.gave_up());
}

TEST(Search, WhatNeverRanHasNoGain) {
  FakeJob job([](const JobSetting&) { return 0.010; }, 0.05, 5);
  Search search({ContextOf(15)}, {});
  for (int i = 0; i < 400 && !search.over(); ++i) {
    const std::vector<Search::Trial> trials = search.Next();
    if (trials.empty()) break;
    std::vector<learn::SegmentResult> results = job.Run(trials);
    std::vector<bool> begun(trials.size(), true);
    for (size_t t = 0; t < trials.size(); ++t) {
      if (trials[t].setting[0].algorithm != kTree) continue;
      results[t] = {};
      begun[t] = false;
    }
    search.Learn(results, begun);
  }
  EXPECT_TRUE(search.over());
  EXPECT_TRUE(search.best()[0].IsDefault());
  for (const TriedConfig& one : search.TriedIn(0)) {
    EXPECT_EQ(one.gain > 0, one.blocks > 0);
    EXPECT_EQ(one.blocks > 0, one.config.algorithm == kRing) << one.config.algorithm;
  }
}

TEST(Search, WithoutContextsItIsOver) {
  Search search({}, {});
  EXPECT_TRUE(search.over());
  EXPECT_TRUE(search.Next().empty());
}

}  // namespace
}  // namespace diapason::job_tune
