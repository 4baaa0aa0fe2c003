#include "search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "search/testing.h"

namespace diapason::search {
namespace {

using Search = Status (*)(measure::Measurer*, const std::vector<CallCase>&, const SearchOptions&,
                          const MeasurementObserver&, SamplesByCandidate*);

class EverySearch : public testing::TestWithParam<Search> {};

TEST_P(EverySearch, KeepsToABudgetOfSamples) {
  for (const int64_t budget : {1, 2, 7, 40, 300}) {
    FakeInstrument measurer(Modelled, 0.05);
    const std::vector<CallCase> call_cases = Grid(8);
    SearchOptions options;
    options.samples = budget;
    SamplesByCandidate known;
    ASSERT_TRUE(GetParam()(&measurer, call_cases, options, {}, &known).ok());
    EXPECT_EQ(static_cast<int64_t>(measurer.asked.size()), budget);
    EXPECT_EQ(static_cast<int64_t>(SamplesIn(known)), budget);
  }
}

TEST_P(EverySearch, BeginsNoSampleAfterItsSeconds) {
  FakeInstrument measurer(Modelled, 0.05);
  SearchOptions options;
  options.seconds = 3e-3;
  SamplesByCandidate known;
  const double begin = measurer.Now();
  double last_begin = begin;
  double now = begin;
  const MeasurementObserver observer = [&](size_t, size_t, const measure::Measurement&) {
    last_begin = now;
    now = measurer.Now();
    return true;
  };
  ASSERT_TRUE(GetParam()(&measurer, Grid(8), options, observer, &known).ok());
  EXPECT_GT(SamplesIn(known), 8u);
  EXPECT_LT(last_begin - begin, options.seconds);
  EXPECT_GE(now - begin, options.seconds);
}

TEST_P(EverySearch, StopsWhenTold) {
  FakeInstrument measurer(Modelled, 0.05);
  int seen = 0;
  const MeasurementObserver observer = [&](size_t, size_t, const measure::Measurement&) {
    return ++seen < 13;
  };
  SamplesByCandidate known;
  ASSERT_TRUE(GetParam()(&measurer, Grid(8), {}, observer, &known).ok());
  EXPECT_EQ(measurer.asked.size(), 13u);
  EXPECT_EQ(SamplesIn(known), 13u);
}

TEST_P(EverySearch, AsksWhoFailsOnceAndNeverChoosesIt) {
  FakeInstrument measurer(Modelled, 0.02);
  // By its times, the best of the larger sizes.
  measurer.fails = [](const measure::Trial& trial) {
    return trial.config.algorithm == kRing && trial.config.channels == 16;
  };
  const std::vector<CallCase> call_cases = Grid(8);
  SamplesByCandidate known;
  SearchOptions options;
  options.samples = 400;
  ASSERT_TRUE(GetParam()(&measurer, call_cases, options, {}, &known).ok());
  std::map<uint64_t, int> asked;
  for (const measure::Trial& trial : measurer.asked) {
    if (measurer.fails(trial)) ++asked[trial.bytes];
  }
  EXPECT_FALSE(asked.empty());
  for (const auto& [bytes, times] : asked) EXPECT_EQ(times, 1) << bytes;
  const std::vector<CaseVerdict> verdicts = Judge(call_cases, known);
  for (size_t i = 0; i < call_cases.size(); ++i) EXPECT_NE(verdicts[i].best, 10u);
}

TEST_P(EverySearch, SurvivesADefaultThatFails) {
  FakeInstrument measurer(Modelled, 0.02);
  measurer.fails = [](const measure::Trial& trial) { return trial.config.IsDefault(); };
  const std::vector<CallCase> call_cases = Grid(4);
  SamplesByCandidate known;
  SearchOptions options;
  options.samples = 120;
  ASSERT_TRUE(GetParam()(&measurer, call_cases, options, {}, &known).ok());
  for (const CaseVerdict& verdict : Judge(call_cases, known)) {
    EXPECT_NE(verdict.best, 0u);
    EXPECT_TRUE(verdict.decided);
  }
}

TEST_P(EverySearch, RepeatsItselfForASeed) {
  const auto run = [](uint64_t seed) {
    FakeInstrument measurer(Modelled, 0.05);
    SearchOptions options;
    options.samples = 60;
    options.seed = seed;
    SamplesByCandidate known;
    EXPECT_TRUE(GetParam()(&measurer, Grid(6), options, {}, &known).ok());
    return measurer.asked;
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

TEST_P(EverySearch, GoesOnWhereThereIsNothingMoreOfSomeone) {
  FakeInstrument measurer(Modelled, 0.05);
  measurer.stuck = [](const measure::Trial& trial) { return trial.config.channels == 2; };
  SamplesByCandidate known;
  SearchOptions options;
  options.samples = 200;
  ASSERT_TRUE(GetParam()(&measurer, Grid(5), options, {}, &known).ok());
  EXPECT_EQ(SamplesIn(known), 200u);
}

TEST_P(EverySearch, EndsWithAnErrorAndKeepsWhatItHas) {
  FakeInstrument measurer(Modelled, 0.05);
  measurer.broken = [&](const measure::Trial&) { return measurer.asked.size() > 20; };
  SamplesByCandidate known;
  const Status status = GetParam()(&measurer, Grid(5), {}, {}, &known);
  EXPECT_EQ(status.message(), "the cluster is gone");
  EXPECT_EQ(SamplesIn(known), 20u);
}

TEST_P(EverySearch, EndsByItself) {
  FakeInstrument measurer(Modelled, 0.01);
  const std::vector<CallCase> call_cases = Grid(5);
  SamplesByCandidate known;
  ASSERT_TRUE(GetParam()(&measurer, call_cases, {}, {}, &known).ok());
  EXPECT_LT(SamplesIn(known), 5u * 11 * 20);
  const std::vector<CaseVerdict> verdicts = Judge(call_cases, known);
  for (size_t i = 0; i < call_cases.size(); ++i) {
    EXPECT_LT(TimeOf(call_cases[i], verdicts[i].best), 1.03 * BestTime(call_cases[i])) << i;
  }
}

TEST_P(EverySearch, RefusesWhatDoesNotFit) {
  FakeInstrument measurer(Modelled);
  SamplesByCandidate known(3);
  EXPECT_FALSE(GetParam()(&measurer, Grid(5), {}, {}, &known).ok());
  known = Nothing(Grid(5));
  known[2][1].seconds.push_back(0);
  EXPECT_FALSE(GetParam()(&measurer, Grid(5), {}, {}, &known).ok());
  std::vector<CallCase> call_cases = Grid(5);
  call_cases[1].candidates.clear();
  known.clear();
  EXPECT_FALSE(GetParam()(&measurer, call_cases, {}, {}, &known).ok());
  known.clear();
  SearchOptions options;
  options.samples = -1;
  EXPECT_FALSE(GetParam()(&measurer, Grid(5), options, {}, &known).ok());
  EXPECT_TRUE(measurer.asked.empty());
  known.clear();
  EXPECT_TRUE(GetParam()(&measurer, {}, {}, {}, &known).ok());
}

INSTANTIATE_TEST_SUITE_P(Searches, EverySearch,
                         testing::Values(&SearchExhaustively, &SearchAdaptively),
                         [](const auto& search) {
                           return search.param == &SearchExhaustively ? "Exhaustive" : "Adaptive";
                         });

TEST(ExhaustiveTest, InterleavesInRoundsWhoseOrderDiffers) {
  FakeInstrument measurer(Modelled, 0.2);
  const std::vector<CallCase> call_cases = Grid(3);
  SearchOptions options;
  options.samples = 3 * 33;
  SamplesByCandidate known;
  ASSERT_TRUE(SearchExhaustively(&measurer, call_cases, options, {}, &known).ok());
  std::vector<std::vector<measure::Trial>> rounds;
  for (size_t round = 0; round < 3; ++round) {
    rounds.emplace_back(measurer.asked.begin() + static_cast<ptrdiff_t>(33 * round),
                        measurer.asked.begin() + static_cast<ptrdiff_t>(33 * round + 33));
  }
  EXPECT_NE(rounds[0], rounds[1]);
  EXPECT_NE(rounds[1], rounds[2]);
  for (const auto& call_case : known) {
    for (const CandidateSamples& evidence : call_case) EXPECT_EQ(evidence.seconds.size(), 3u);
  }
  for (const std::vector<measure::Trial>& round : rounds) {
    for (size_t i = 0; i < round.size(); ++i) {
      EXPECT_EQ(std::count(round.begin(), round.end(), round[i]), 1);
    }
  }
}

TEST(ExhaustiveTest, SamplesTheNoisyLonger) {
  FakeInstrument measurer([&](const measure::Trial& trial) {
    // Rings are fast and slow in turn.
    const auto times = std::count(measurer.asked.begin(), measurer.asked.end(), trial);
    return trial.config.algorithm == kRing && times % 2 == 0 ? 1.3e-3 : 1e-3;
  });
  const std::vector<CallCase> call_cases = Grid(2);
  SearchOptions options;
  options.least_samples = 4;
  options.most_samples = 9;
  SamplesByCandidate known;
  ASSERT_TRUE(SearchExhaustively(&measurer, call_cases, options, {}, &known).ok());
  for (const auto& call_case : known) {
    for (size_t i = 0; i < call_case.size(); ++i) {
      EXPECT_EQ(call_case[i].seconds.size(), i >= 6 ? 9u : 4u) << i;
    }
  }
}

TEST(ExhaustiveTest, ChangesTheEnvironmentOnceARound) {
  FakeInstrument measurer([](const measure::Trial&) { return 1e-3; });
  std::vector<CallCase> call_cases = Grid(3);
  for (CallCase& call_case : call_cases) {
    call_case.candidates.push_back(Of(kKeep, kKeep, 0, "NCCL_NTHREADS=256"));
    call_case.candidates.push_back(Of(kKeep, kKeep, 0, "NCCL_BUFFSIZE=1048576"));
  }
  SearchOptions options;
  options.least_samples = 1;
  SamplesByCandidate known;
  ASSERT_TRUE(SearchExhaustively(&measurer, call_cases, options, {}, &known).ok());
  int changes = 0;
  for (size_t i = 1; i < measurer.asked.size(); ++i) {
    changes += measurer.asked[i].environment != measurer.asked[i - 1].environment ? 1 : 0;
  }
  EXPECT_EQ(changes, 2);
}

TEST(ExhaustiveTest, VisitsAConfigurationWhereEachCostsALaunch) {
  FakeInstrument measurer([](const measure::Trial&) { return 1e-3; }, 0.1);
  SearchOptions options;
  options.by_configuration = true;
  options.visit = 4;
  options.most_samples = 4;
  SamplesByCandidate known;
  ASSERT_TRUE(SearchExhaustively(&measurer, Grid(3), options, {}, &known).ok());
  int changes = 0;
  for (size_t i = 1; i < measurer.asked.size(); ++i) {
    changes += measurer.asked[i].config == measurer.asked[i - 1].config ? 0 : 1;
  }
  EXPECT_EQ(changes, 10);
}

TEST(AdaptiveTest, GoesOnFromWhatIsKnown) {
  const std::vector<CallCase> call_cases = Grid(6);
  FakeInstrument measurer(Modelled, 0.03);
  SearchOptions options;
  options.samples = 60;
  SamplesByCandidate known;
  ASSERT_TRUE(SearchAdaptively(&measurer, call_cases, options, {}, &known).ok());
  const SamplesByCandidate before = known;
  options.samples = 10;
  ASSERT_TRUE(SearchAdaptively(&measurer, call_cases, options, {}, &known).ok());
  EXPECT_EQ(SamplesIn(known), 70u);
  for (size_t i = 0; i < known.size(); ++i) {
    for (size_t j = 0; j < known[i].size(); ++j) {
      const std::vector<double>& old = before[i][j].seconds;
      EXPECT_TRUE(std::equal(old.begin(), old.end(), known[i][j].seconds.begin()));
    }
  }
}

TEST(AdaptiveTest, FindsWinnersWithAFewSamples) {
  const std::vector<CallCase> call_cases = Grid(16);
  FakeInstrument measurer(Modelled, 0.03);
  SearchOptions options;
  options.samples = 16 * 11 * 45 / 100;
  SamplesByCandidate known;
  ASSERT_TRUE(SearchAdaptively(&measurer, call_cases, options, {}, &known).ok());
  const std::vector<CaseVerdict> verdicts = Judge(call_cases, known);
  double sum = 0;
  for (size_t i = 0; i < call_cases.size(); ++i) {
    const double share = BestTime(call_cases[i]) / TimeOf(call_cases[i], verdicts[i].best);
    EXPECT_GT(share, 0.85) << call_cases[i].trial.bytes;
    sum += std::log(share);
  }
  EXPECT_GT(std::exp(sum / 16), 0.97);
}

TEST(AdaptiveTest, SamplesEveryDefault) {
  const std::vector<CallCase> call_cases = Grid(10);
  FakeInstrument measurer(Modelled, 0.03);
  SearchOptions options;
  options.samples = 40;
  SamplesByCandidate known;
  ASSERT_TRUE(SearchAdaptively(&measurer, call_cases, options, {}, &known).ok());
  for (const auto& call_case : known) EXPECT_FALSE(call_case[0].seconds.empty());
}

TEST(AdaptiveTest, OneContestOfStrangersIsDecidedToo) {
  // Nothing to share: one size, and candidates that have nothing in common.
  CallCase call_case;
  call_case.trial.bytes = 1 << 20;
  call_case.candidates.push_back({});
  for (int i = 1; i < 12; ++i) {
    call_case.candidates.push_back(Of(kKeep, kKeep, 0, "NAME=" + std::to_string(i)));
  }
  FakeInstrument measurer(
      [](const measure::Trial& trial) { return trial.environment == "NAME=7" ? 0.8e-3 : 1e-3; },
      0.03);
  SearchOptions options;
  options.samples = 40;
  SamplesByCandidate known;
  ASSERT_TRUE(SearchAdaptively(&measurer, {call_case}, options, {}, &known).ok());
  const CaseVerdict verdict = Judge({call_case}, known)[0];
  EXPECT_EQ(verdict.best, 7u);
  EXPECT_TRUE(verdict.decided);
  EXPECT_NEAR(verdict.seconds, 0.8e-3, 0.04e-3);
  EXPECT_NEAR(verdict.against, 1e-3, 0.05e-3);
  EXPECT_GE(known[0][7].seconds.size(), 3u);
}

TEST(AdaptiveTest, GetsOverDisturbedSamples) {
  const std::vector<CallCase> call_cases = Grid(12);
  FakeInstrument measurer(Modelled, 0.01);
  measurer.disturbed = [](const measure::Trial&, size_t index) { return MixBits(index) % 20 == 0; };
  SearchOptions options;
  options.samples = 130;
  SamplesByCandidate known;
  ASSERT_TRUE(SearchAdaptively(&measurer, call_cases, options, {}, &known).ok());
  const std::vector<CaseVerdict> verdicts = Judge(call_cases, known);
  for (size_t i = 0; i < call_cases.size(); ++i) {
    EXPECT_GT(BestTime(call_cases[i]) / TimeOf(call_cases[i], verdicts[i].best), 0.8) << i;
  }
}

TEST(AdaptiveTest, SpendsSecondsWhereTheyBuyMost) {
  // The last size takes as long as all others together, thrice.
  const std::vector<CallCase> call_cases = Grid(14);
  FakeInstrument by_samples(Modelled, 0.03);
  FakeInstrument by_seconds(Modelled, 0.03);
  SamplesByCandidate known;
  SearchOptions options;
  options.samples = 80;
  ASSERT_TRUE(SearchAdaptively(&by_samples, call_cases, options, {}, &known).ok());
  known.clear();
  options.samples = 0;
  options.seconds = by_samples.Now() - 100;
  ASSERT_TRUE(SearchAdaptively(&by_seconds, call_cases, options, {}, &known).ok());
  EXPECT_GT(by_seconds.asked.size(), by_samples.asked.size());
}

// Every candidate of a grid with one sample that is exactly what the model says.

}  // namespace
}  // namespace diapason::search
