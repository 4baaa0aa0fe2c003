#include "tune/final_round.h"

#include <gtest/gtest.h>

#include "tune/fake_ranks.h"

namespace diapason::tune {
namespace {

using measure::Measurement;
using measure::Trial;
using search::CallCase;
using search::CandidateSamples;

// The default, then ring with 1, 2, 4 and 8 channels, tree, and one nobody has measured.
CallCase Six() {
  CallCase call_case;
  call_case.trial.bytes = 65536;
  call_case.candidates = {{}};
  for (const int channels : {1, 2, 4, 8})
    call_case.candidates.push_back({{kRing, kSimple, channels}, ""});
  call_case.candidates.push_back({{kTree, kSimple, 0}, ""});
  call_case.candidates.push_back({{kTree, kLl, 0}, ""});
  return call_case;
}

std::vector<CandidateSamples> Times(const std::vector<double>& seconds) {
  std::vector<CandidateSamples> evidence;
  for (const double one : seconds) {
    evidence.emplace_back();
    if (one > 0) evidence.back().seconds = {one, one * 1.01};
  }
  return evidence;
}

TEST(Finalists, TheFastestButNotAllOfOneKind) {
  const std::vector<size_t> finalists =
      Finalists(Six(), Times({10, 5.0, 5.1, 5.2, 5.3, 5.4, 0}), {}, 6);
  // Three of ring's four, then tree; nobody knows the last.
  EXPECT_EQ(finalists, (std::vector<size_t>{0, 1, 2, 3, 5}));
}

TEST(Finalists, TheHopelessAndTheFailedStayOut) {
  std::vector<CandidateSamples> evidence = Times({10, 5.0, 8.0, 9.0, 9.5, 5.4, 0});
  evidence[5].outcome = dataset::SampleOutcome::kWrong;
  EXPECT_EQ(Finalists(Six(), evidence, {}, 6), (std::vector<size_t>{0, 1}));
}

TEST(Finalists, WhomTheModelSendsComesIn) {
  EXPECT_EQ(Finalists(Six(), Times({10, 5.0, 8.0, 9.0, 9.5, 9.4, 0}), {6}, 2),
            (std::vector<size_t>{0, 1, 6}));
}

std::vector<Winner> Winners(const FakeRanks::Times& times, const std::vector<size_t>& finalists,
                            FakeRanks::History* history = nullptr) {
  FakeRanks::History own;
  FakeRanks ranks(times, {}, history == nullptr ? &own : history);
  FinalRoundOptions options;
  options.most_rounds = 7;
  const Result<std::vector<Winner>> winners =
      RunFinalRound(&ranks, {Six()}, {finalists}, options,
                    [](size_t, size_t, const Measurement&) { return true; });
  EXPECT_TRUE(winners.ok());
  return winners.ok() ? winners.value() : std::vector<Winner>(1);
}

double Of(const Trial& trial, double library_default, double ring, double tree) {
  if (trial.config.IsDefault()) return library_default;
  return trial.config.algorithm == kRing ? ring : tree;
}

TEST(RunFinalRound, OnlyWhatTheyTakeNowCounts) {
  const std::vector<Winner> winners =
      Winners([](const Trial& trial, size_t) { return Took(Of(trial, 10, 9, 6)); }, {0, 1, 5});
  EXPECT_EQ(winners[0].candidate, 5U);
  EXPECT_DOUBLE_EQ(winners[0].seconds, 6);
  EXPECT_DOUBLE_EQ(winners[0].library_default, 10);
}

TEST(RunFinalRound, TheDefaultStaysUnlessSomebodyIsAhead) {
  const std::vector<Winner> winners =
      Winners([](const Trial& trial, size_t) { return Took(Of(trial, 10, 9.95, 12)); }, {0, 1, 5});
  EXPECT_EQ(winners[0].candidate, 0U);
  EXPECT_EQ(winners[0].runner_up, 1U);
}

TEST(RunFinalRound, OfEqualsTheOneWithFewerChannelsIsTaken) {
  const std::vector<Winner> winners = Winners(
      [](const Trial& trial, size_t) {
        return Took(trial.config.IsDefault() ? 10 : 5 - 0.005 * trial.config.channels);
      },
      {0, 2, 3, 4});
  EXPECT_EQ(winners[0].candidate, 2U);
}

TEST(RunFinalRound, WhoFailsIsOutAndWhoRunsFirstChanges) {
  FakeRanks::History history;
  const std::vector<Winner> winners = Winners(
      [](const Trial& trial, size_t) {
        Measurement measurement = Took(Of(trial, 10, 1, 6));
        if (trial.config.algorithm == kRing) measurement.outcome = dataset::SampleOutcome::kHang;
        return measurement;
      },
      {0, 1, 5}, &history);
  EXPECT_EQ(winners[0].candidate, 5U);
  size_t rings = 0;
  for (const Trial& trial : history.asked) rings += trial.config.algorithm == kRing ? 1 : 0;
  EXPECT_EQ(rings, 1U);
  EXPECT_TRUE(history.asked[0].config.IsDefault());
  EXPECT_FALSE(history.asked[3].config.IsDefault());
}

}  // namespace
}  // namespace diapason::tune
