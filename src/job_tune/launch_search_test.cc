#include "job_tune/launch_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/random.h"

namespace diapason::job_tune {
namespace {

constexpr Config kTreeSimple{kTree, kSimple, 0};
constexpr Config kTreeLl{kTree, kLl, 0};
constexpr Config kRingLl{kRing, kLl, 0};

SearchContext ContextOf(int band, int channels = 8) {
  SearchContext context;
  context.context = {Library::kNccl, Collective::kAllReduce, band, {1, 4}};
  context.offered = {{{kRing, kSimple, 0}, 1}, {kTreeSimple, 1.5}, {kTreeLl, 2}, {kRingLl, 1.2}};
  context.by_default = {kRing, kSimple, channels};
  return context;
}

using Truth = std::function<double(const JobSetting&)>;

// Runs all launches; what each of them ran.
std::vector<JobSetting> RunToEnd(LaunchSearch* search, const Truth& truth, double noise = 0,
                                 uint64_t seed = 1) {
  const CounterRandom random(seed, 0);
  std::vector<JobSetting> ran;
  while (const std::optional<JobSetting> setting = search->Next()) {
    if (ran.size() == 200) break;
    ran.push_back(*setting);
    search->Learn(truth(*setting) * std::exp(noise * random.Normal(ran.size())));
  }
  return ran;
}

size_t CountOf(const std::vector<JobSetting>& ran, const Config& config) {
  return static_cast<size_t>(std::count(ran.begin(), ran.end(), JobSetting{config}));
}

TEST(LaunchSearch, TheBestPairAndItsChannels) {
  LaunchSearch search({ContextOf(4)});
  const auto ran = RunToEnd(&search, [](const JobSetting& setting) {
    const Config& one = setting[0];
    if (one.algorithm != kTree || one.protocol != kSimple) return 1.0;
    return one.channels == 2 ? 0.7 : 0.8;
  });
  EXPECT_TRUE(search.over());
  EXPECT_EQ(search.Candidate(), (JobSetting{{kTree, kSimple, 2}}));
  EXPECT_LE(ran.size(), 12u);
  const std::vector<TriedConfig> tried = search.TriedIn(0);
  EXPECT_EQ(tried.front().config, (Config{kTree, kSimple, 2}));
  EXPECT_NEAR(tried.front().gain, 1 / 0.7, 1e-9);
  EXPECT_LT(tried.front().low, tried.front().gain);
}

TEST(LaunchSearch, WhatIsClearlySlowerRunsOnce) {
  SearchContext context = ContextOf(4, 0);
  context.offered = {{{kRing, kSimple, 0}, 1}, {kTreeSimple, 1.5}, {kTreeLl, 2}};
  LaunchSearch search({context});
  const auto ran = RunToEnd(&search, [](const JobSetting& setting) {
    return setting[0] == kTreeLl ? 1.2 : setting[0] == kTreeSimple ? 0.97 : 1.0;
  });
  EXPECT_EQ(CountOf(ran, kTreeLl), 1u);
  EXPECT_EQ(CountOf(ran, kTreeSimple), 2u);
  EXPECT_EQ(search.Candidate(), (JobSetting{kTreeSimple}));
}

TEST(LaunchSearch, EveryRoundHasTheLibrarysOwnChoiceAndTheOrderIsReversed) {
  LaunchSearch search({ContextOf(4, 0)});
  const auto ran = RunToEnd(&search, [](const JobSetting&) { return 1.0; });
  // A round of all, and one of the best two.
  ASSERT_EQ(ran.size(), 7u);
  EXPECT_TRUE(ran[0][0].IsDefault());
  EXPECT_EQ(ran[1][0], kRingLl);  // the cheapest by the library's own estimates
  EXPECT_TRUE(ran[6][0].IsDefault());
  EXPECT_TRUE(search.Candidate()[0].IsDefault());
}

TEST(LaunchSearch, FewerChannelsOfTheLibrarysOwnPair) {
  LaunchSearch search({ContextOf(4)});
  (void)RunToEnd(&search, [](const JobSetting& setting) {
    return setting[0] == Config{kRing, kSimple, 4} ? 0.9 : 1.0;
  });
  EXPECT_EQ(search.Candidate(), (JobSetting{{kRing, kSimple, 4}}));
}

TEST(LaunchSearch, CountsAreNotTriedWhereTheyCannotBe) {
  SearchContext context = ContextOf(4);
  context.channel_counts = false;
  LaunchSearch search({context});
  for (const JobSetting& one : RunToEnd(&search, [](const JobSetting&) { return 1.0; })) {
    EXPECT_EQ(one[0].channels, 0);
  }
}

TEST(LaunchSearch, ContextsOneAfterTheOther) {
  LaunchSearch search({ContextOf(4, 0), ContextOf(9, 0)});
  const auto ran = RunToEnd(&search, [](const JobSetting& setting) {
    return (setting[0] == kTreeLl ? 0.8 : 1.0) * (setting[1] == kRingLl ? 0.8 : 1.0);
  });
  EXPECT_EQ(search.Candidate(), (JobSetting{kTreeLl, kRingLl}));
  // The second beside the best of the first.
  EXPECT_EQ(ran.back()[0], kTreeLl);
  EXPECT_TRUE(ran.front()[1].IsDefault());
}

TEST(LaunchSearch, ACandidateThatFailsIsDropped) {
  LaunchSearch search({ContextOf(4, 0)});
  const auto ran = RunToEnd(&search, [](const JobSetting& setting) {
    return setting[0] == kTreeLl ? 0.0 : setting[0] == kTreeSimple ? 0.95 : 1.0;
  });
  EXPECT_EQ(CountOf(ran, kTreeLl), 1u);
  EXPECT_EQ(search.Candidate(), (JobSetting{kTreeSimple}));
}

TEST(LaunchSearch, AContextInWhichTheLibrarysChoiceFailsIsLeftToIt) {
  LaunchSearch search({ContextOf(4), ContextOf(9, 0)});
  const auto ran = RunToEnd(&search, [](const JobSetting& setting) {
    return setting[0].IsDefault() && setting[1].IsDefault() ? 0.0 : 1.0;
  });
  EXPECT_TRUE(search.over());
  EXPECT_EQ(ran.size(), 4u);
  EXPECT_EQ(search.Candidate(), JobSetting(2));
}

TEST(LaunchSearch, WhatSeemsFasterIsTheCandidateOfASearchThatIsCutShort) {
  LaunchSearch search({ContextOf(4)});
  for (int i = 0; i < 4; ++i) {
    const JobSetting setting = *search.Next();
    search.Learn(setting[0] == kRingLl ? 0.94 : 1.0);
  }
  EXPECT_FALSE(search.over());
  EXPECT_EQ(search.Candidate(), (JobSetting{kRingLl}));
}

TEST(LaunchSearch, AnUnfinishedRoundCountsWhereTimeIsOver) {
  LaunchSearch search({ContextOf(4)});
  for (int i = 0; i < 3; ++i) {
    const JobSetting setting = *search.Next();
    search.Learn(setting[0] == kTreeSimple ? 0.64 : 1.0);
  }
  EXPECT_TRUE(search.Candidate()[0].IsDefault()) << "the round is not over";
  search.Stop();
  EXPECT_FALSE(search.Next().has_value());
  EXPECT_FALSE(search.over()) << "not everything was compared";
  EXPECT_EQ(search.Candidate(), (JobSetting{kTreeSimple}));
  EXPECT_EQ(search.TriedIn(0).size(), 2u);
  // Without the library's own choice beside it, a time says nothing.
  LaunchSearch nothing({ContextOf(4)});
  nothing.Stop();
  EXPECT_TRUE(nothing.Candidate()[0].IsDefault());
  EXPECT_TRUE(nothing.TriedIn(0).empty());
}

TEST(LaunchSearch, NothingToTry) {
  LaunchSearch none({});
  EXPECT_TRUE(none.over());
  EXPECT_FALSE(none.Next().has_value());
  SearchContext alone = ContextOf(4, 1);
  alone.offered = {{{kRing, kSimple, 0}, 1}};
  EXPECT_TRUE(LaunchSearch({alone}).over());
}

// Launches that differ by 2 %: a tenth is nearly always found, and nothing is made up of it.
TEST(LaunchSearch, AmongLaunchesThatDiffer) {
  int found = 0;
  double lost = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    LaunchSearch search({ContextOf(4)});
    const Truth truth = [](const JobSetting& setting) {
      return setting[0].algorithm == kTree && setting[0].protocol == kSimple ? 0.9 : 1.0;
    };
    const auto ran = RunToEnd(&search, truth, 0.02, seed);
    EXPECT_LE(ran.size(), 16u);
    found += truth(search.Candidate()) < 1 ? 1 : 0;
    lost += truth(search.Candidate()) - 0.9;
  }
  EXPECT_GE(found, 95);
  EXPECT_LT(lost / 100, 0.01);
}

}  // namespace
}  // namespace diapason::job_tune
