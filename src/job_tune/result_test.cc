#include "job_tune/result.h"

#include <gtest/gtest.h>

#include "job_tune/page.h"
#include "job_tune/testing.h"

namespace diapason::job_tune {
namespace {

TEST(JobTuneResult, TheVerdictIsASentence) {
  EXPECT_EQ(
      testing::Faster().Headline(),
      "an iteration takes 8.5 ms by default and 5.9 ms tuned: 1.44 x as fast [1.42, 1.47], in "
      "3 fresh launches");
  EXPECT_EQ(
      testing::WithVerdict(Verdict::kNothingToGain).Headline(),
      "nothing to gain: an iteration takes 8.6 ms, and nothing that was tried made it faster");
  EXPECT_EQ(testing::WithVerdict(Verdict::kNotConfirmed).Headline(),
            "not confirmed: what the search found is 1.01 x as fast [0.96, 1.06], in 3 fresh "
            "launches: the interval of the gain has 1 in it");
  EXPECT_EQ(
      testing::WithVerdict(Verdict::kMetricChanged).Headline(),
      "faster, but the metric changed: an iteration takes 8.5 ms by default and 5.9 ms tuned: "
      "1.44 x as fast [1.42, 1.47], in 3 fresh launches; the metric has changed: 2.12 by default, "
      "2.19 tuned, a change of 3.3 % where 0.1 % is allowed. If such a change is harmless, give a "
      "larger --metric-tolerance");
  EXPECT_EQ(testing::WithVerdict(Verdict::kUndecided).Headline(),
            "undecided: the command ended after 12 iterations, and 200 are needed: let it run "
            "longer; an iteration takes 8.6 ms");
  EXPECT_EQ(JobTuneResult().Headline(), "undecided");
}

TEST(JobTuneResult, WhatCouldNotBeTried) {
  const std::vector<std::string> untried = testing::Faster().Untried();
  ASSERT_EQ(untried.size(), 2u);
  EXPECT_EQ(untried[0].find("allgather up to 1MiB, 4 ranks on 1 node: groups of several calls"),
            0u);
  EXPECT_NE(untried[1].find("15 % of the collective time cannot be tried at all: groups"),
            std::string::npos);
  EXPECT_NE(untried[1].find("15 % of the collective time"), std::string::npos);
}

TEST(ProfileSettings, NeedsJournalsOfTurns) {
  JobTuneResult result = testing::Faster();
  EXPECT_FALSE(ProfileSettings({}, {}, &result).ok());
  EXPECT_FALSE(ProfileSettings({"/nowhere/j.1"}, {}, &result).ok());
  EXPECT_GT(result.by_default.iteration, 0) << "what was there stays";
}

TEST(PageOf, BarsAddUpToTheIteration) {
  const report::JobPage page = PageOf(testing::Faster(), 1.7e9);
  ASSERT_EQ(page.settings.size(), 2u);
  for (const report::JobSetting& one : page.settings) {
    double sum = one.compute + one.hidden;
    for (const auto& [at, seconds] : one.exposed) sum += seconds;
    EXPECT_NEAR(sum, one.seconds, 1e-9) << one.name;
  }
  EXPECT_EQ(page.classes,
            (std::vector<std::string>{"allreduce up to 32 KiB", "allgather up to 1 MiB"}));
  EXPECT_LT(page.settings[1].low, page.settings[1].seconds);
  EXPECT_GT(page.settings[1].high, page.settings[1].seconds);
  EXPECT_EQ(page.verified[3].gain.gain, 0) << "it cannot tell";
  EXPECT_TRUE(page.contexts[0].kept);
  EXPECT_FALSE(page.contexts[1].kept);
}

TEST(PageOf, WithoutVerificationOnlyTheLookIsDrawn) {
  const report::JobPage page = PageOf(testing::WithVerdict(Verdict::kNothingToGain), 1.7e9);
  ASSERT_EQ(page.settings.size(), 1u);
  EXPECT_EQ(page.gain.gain, 0);
  EXPECT_TRUE(PageOf(JobTuneResult(), 1.7e9).settings.empty());
}

}  // namespace
}  // namespace diapason::job_tune
