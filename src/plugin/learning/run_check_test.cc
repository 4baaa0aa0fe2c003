#include "plugin/learning/run_check.h"

#include <gtest/gtest.h>

namespace diapason::plugin {
namespace {

using Kind = RunDifference::Kind;

std::vector<RunSample> Samples(uint64_t first, uint64_t sequence, int count = 4) {
  std::vector<RunSample> samples;
  for (int i = 0; i < count; ++i) samples.push_back({first + i, sequence + i, i % 2, 2, 4});
  return samples;
}

TEST(RunCheck, EqualRunsAreEqual) {
  EXPECT_EQ(CompareRuns(Samples(10, 30), Samples(10, 30)).kind, Kind::kNone);
  EXPECT_EQ(CompareRuns({}, Samples(10, 30)).kind, Kind::kNone);
}

TEST(RunCheck, GapsAreNoDifference) {
  std::vector<RunSample> mine = Samples(10, 30, 8);
  std::vector<RunSample> theirs = mine;
  mine.erase(mine.begin() + 1);
  theirs.erase(theirs.begin() + 5);
  EXPECT_EQ(CompareRuns(mine, theirs).kind, Kind::kNone);
}

TEST(RunCheck, ADifferentAlgorithmOrProtocolIsADifferentRun) {
  for (const bool algorithm : {true, false}) {
    std::vector<RunSample> theirs = Samples(10, 30);
    (algorithm ? theirs[2].algorithm : theirs[2].protocol) += 1;
    const RunDifference difference = CompareRuns(Samples(10, 30), theirs);
    EXPECT_EQ(difference.kind, Kind::kRuns);
    EXPECT_NE(difference.text.find("call 32"), std::string::npos) << difference.text;
  }
}

TEST(RunCheck, AShiftedClockIsFound) {
  std::vector<RunSample> theirs = Samples(10, 30);
  for (RunSample& one : theirs) {
    one.index += 1;
    one.algorithm = 0;
  }
  std::vector<RunSample> mine = Samples(10, 30);
  for (RunSample& one : mine) one.algorithm = 0;
  EXPECT_EQ(CompareRuns(mine, theirs).kind, Kind::kClocks);
}

TEST(RunCheck, ADifferentRunWeighsMoreThanADifferentClock) {
  std::vector<RunSample> theirs = Samples(10, 30);
  for (RunSample& one : theirs) one.index += 1;
  theirs[3].protocol = 0;
  EXPECT_EQ(CompareRuns(Samples(10, 30), theirs).kind, Kind::kRuns);
}

TEST(RunCheck, ADifferentCountAloneDoesNotEndTheJob) {
  std::vector<RunSample> theirs = Samples(10, 30);
  theirs[1].channels = 2;
  EXPECT_EQ(CompareRuns(Samples(10, 30), theirs).kind, Kind::kClocks);
}

TEST(RunCheck, TextsComeBack) {
  std::vector<RunSample> samples = Samples(10, 30);
  samples.push_back({uint64_t{1} << 62, 0, -1, -1, 0});
  const auto back = ParseRunSamples(RunSamplesText(samples));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(*back, samples);
  ASSERT_TRUE(ParseRunSamples("").has_value());
}

TEST(RunCheck, WhatNoRankHasWrittenIsNotRead) {
  for (const char* text : {"1", "1:2", "1:2:3.4.5", "1:2:3.4.5;x", "-1:2:3.4.5;", "1:2:300.4.5;",
                           "1:2:3.4.-5;", "99999999999999999999:2:3.4.5;", " 1:2:3.4.5;"}) {
    EXPECT_FALSE(ParseRunSamples(text).has_value()) << text;
  }
  std::string many;
  for (size_t i = 0; i <= kMostRunSamples; ++i) many += "1:2:3.4.5;";
  EXPECT_FALSE(ParseRunSamples(many).has_value());
}

agree::EpochLog::Epoch EpochOf(uint32_t number, uint64_t start, uint64_t calls) {
  agree::EpochLog::Epoch epoch;
  epoch.number = number;
  epoch.start = start;
  epoch.schedule.segments.push_back({Config(), calls, true});
  return epoch;
}

TEST(RunSamples, EpochsAreOverWhenTheirLastRunsMustHaveCome) {
  RunSamples runs;
  runs.Entered(EpochOf(2, 16, 10));
  runs.Add({16, 100, 0, 0, 1});
  runs.Entered(EpochOf(3, 26, 10));
  EXPECT_TRUE(runs.over().empty());
  runs.Add({25, 109, 0, 0, 1});  // late, and of the epoch before
  runs.Add({26, 110, 1, 0, 1});
  runs.Add({99, 111, 1, 0, 1});  // of no epoch
  runs.Entered(EpochOf(4, 36, 10));
  ASSERT_EQ(runs.over().size(), 1u);
  EXPECT_EQ(runs.over().front().number, 2u);
  EXPECT_EQ(runs.over().front().samples.size(), 2u);
  for (uint32_t number = 5; number < 40; ++number) {
    runs.Entered(EpochOf(number, number * 10u - 4, 10));
    runs.Add({number * 10u - 4, number, 0, 0, 1});
  }
  EXPECT_LE(runs.over().size(), 8u) << "what is not looked at does not pile up";
}

}  // namespace
}  // namespace diapason::plugin
