#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "search/search.h"
#include "search/testing.h"

namespace diapason::search {
namespace {

TEST(JudgeTest, OneSampleOfEachDecidesNothing) {
  CallCase call_case;
  call_case.trial.bytes = 1 << 10;
  call_case.candidates = {{}, Of(kKeep, kKeep, 0, "NAME=1")};
  SamplesByCandidate known(1, std::vector<CandidateSamples>(2));
  known[0][0].seconds = {2.1e-3};
  known[0][1].seconds = {0.05e-3};
  EXPECT_FALSE(Judge({call_case}, known)[0].decided);
  known[0][0].seconds = {2.1e-3, 2.2e-3, 2.1e-3};
  known[0][1].seconds = {0.05e-3, 0.05e-3, 0.051e-3};
  EXPECT_TRUE(Judge({call_case}, known)[0].decided);
  EXPECT_EQ(Judge({call_case}, known)[0].best, 1u);
}

SamplesByCandidate AsModelled(const std::vector<CallCase>& call_cases, size_t samples) {
  SamplesByCandidate known = Nothing(call_cases);
  for (size_t i = 0; i < call_cases.size(); ++i) {
    for (size_t j = 0; j < known[i].size(); ++j) {
      known[i][j].seconds.assign(samples, TimeOf(call_cases[i], j));
    }
  }
  return known;
}

TEST(JudgeTest, CallsATieATie) {
  const std::vector<CallCase> call_cases = Grid(6);
  SamplesByCandidate known = Nothing(call_cases);
  const CounterRandom random(5, 5);
  uint64_t draw = 0;
  for (size_t i = 0; i < call_cases.size(); ++i) {
    for (CandidateSamples& evidence : known[i]) {
      for (int k = 0; k < 5; ++k) {
        evidence.seconds.push_back(1e-3 * std::exp(0.02 * random.Normal(draw++)));
      }
    }
  }
  int decided = 0;
  for (const CaseVerdict& verdict : Judge(call_cases, known)) {
    decided += verdict.decided ? 1 : 0;
    // A false winner, if any, is one by a hair.
    EXPECT_GT(verdict.seconds, 0.97e-3);
  }
  EXPECT_LE(decided, 1);
}

TEST(JudgeTest, KeepsTheDefaultWhereNothingElseWasSampled) {
  const std::vector<CallCase> call_cases = Grid(4);
  SamplesByCandidate known = Nothing(call_cases);
  for (size_t i = 0; i < call_cases.size(); ++i) {
    known[i][0].seconds.push_back(TimeOf(call_cases[i], 0));
  }
  for (const CaseVerdict& verdict : Judge(call_cases, known)) {
    EXPECT_EQ(verdict.best, 0u);
    EXPECT_FALSE(verdict.decided);
  }
  for (const CaseVerdict& verdict : Judge(call_cases, Nothing(call_cases))) {
    EXPECT_EQ(verdict.best, 0u);
    EXPECT_FALSE(verdict.decided);
  }
}

TEST(JudgeTest, FindsWhatIsClear) {
  const std::vector<CallCase> call_cases = Grid(12);
  const std::vector<CaseVerdict> verdicts = Judge(call_cases, AsModelled(call_cases, 3));
  for (size_t i = 0; i < call_cases.size(); ++i) {
    EXPECT_LT(TimeOf(call_cases[i], verdicts[i].best), 1.01 * BestTime(call_cases[i])) << i;
    EXPECT_NEAR(verdicts[i].against / TimeOf(call_cases[i], 0), 1, 0.02) << i;
  }
}

TEST(JudgeTest, OneLuckySampleDoesNotWin) {
  const std::vector<CallCase> call_cases = Grid(12);
  SamplesByCandidate known = AsModelled(call_cases, 1);
  const size_t before = Judge(call_cases, known)[6].best;
  for (size_t j = 1; j < known[6].size(); ++j) {
    if (TimeOf(call_cases[6], j) < 1.3 * BestTime(call_cases[6])) continue;
    SamplesByCandidate lucky = known;
    lucky[6][j].seconds[0] = 0.5 * BestTime(call_cases[6]);
    EXPECT_EQ(Judge(call_cases, lucky)[6].best, before) << j;
    // Confirmed, it is no luck.
    lucky[6][j].seconds.assign(3, 0.5 * BestTime(call_cases[6]));
    EXPECT_EQ(Judge(call_cases, lucky)[6].best, j);
  }
}

TEST(JudgeTest, WhoFailedAfterFineSamplesDoesNotWin) {
  const std::vector<CallCase> call_cases = Grid(3);
  SamplesByCandidate known = AsModelled(call_cases, 3);
  for (auto& call_case : known) {
    call_case[5].seconds.assign(3, 1e-7);
    call_case[5].outcome = SampleOutcome::kWrong;
  }
  for (const CaseVerdict& verdict : Judge(call_cases, known)) EXPECT_NE(verdict.best, 5u);
}

TEST(JudgeTest, OneDisturbedSampleDoesNotLose) {
  const std::vector<CallCase> call_cases = Grid(12);
  SamplesByCandidate known = AsModelled(call_cases, 3);
  for (auto& call_case : known) {
    for (CandidateSamples& evidence : call_case) evidence.seconds[1] *= 5;
  }
  const std::vector<CaseVerdict> verdicts = Judge(call_cases, known);
  for (size_t i = 0; i < call_cases.size(); ++i) {
    EXPECT_LT(TimeOf(call_cases[i], verdicts[i].best), 1.05 * BestTime(call_cases[i])) << i;
  }
}

TEST(JudgeTest, SaysNothingAboutWhatDoesNotFit) {
  const std::vector<CaseVerdict> verdicts = Judge(Grid(3), SamplesByCandidate(1));
  ASSERT_EQ(verdicts.size(), 3u);
  for (const CaseVerdict& verdict : verdicts) {
    EXPECT_EQ(verdict.best, 0u);
    EXPECT_FALSE(verdict.decided);
  }
}

TEST(JudgeTest, TakesManyContenders) {
  // More than one block holds, in one case and over all.
  std::vector<CallCase> call_cases(2);
  for (size_t i = 0; i < call_cases.size(); ++i) {
    call_cases[i].trial.bytes = uint64_t{1} << (10 + i);
    call_cases[i].candidates.push_back({});
    for (int j = 1; j < 3000; ++j) {
      call_cases[i].candidates.push_back(Of(kRing, kSimple, 1, "NAME=" + std::to_string(j)));
    }
  }
  SamplesByCandidate known = Nothing(call_cases);
  for (auto& call_case : known) {
    for (size_t j = 0; j < call_case.size(); j += 50)
      call_case[j].seconds = {1e-3, 1.01e-3, 0.99e-3};
    call_case[2500].seconds = {0.5e-3, 0.51e-3, 0.5e-3};
  }
  for (const CaseVerdict& verdict : Judge(call_cases, known)) {
    EXPECT_EQ(verdict.best, 2500u);
    EXPECT_TRUE(verdict.decided);
  }
}

}  // namespace
}  // namespace diapason::search
