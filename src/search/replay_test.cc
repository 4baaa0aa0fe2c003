#include "search/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace diapason::search {
namespace {

using dataset::SampleOutcome;
using dataset::StoreContents;
using dataset::StoredSample;

StoredSample Of(const std::string& algorithm, int channels, uint64_t bytes, int round,
                double seconds) {
  StoredSample record;
  dataset::Point& point = record.sample.point;
  point.collective = "allreduce";
  point.bytes = bytes;
  point.nodes = 2;
  point.ranks = 16;
  point.algorithm = algorithm;
  point.protocol = algorithm.empty() ? "" : "simple";
  point.channels = channels;
  record.sample.round = round;
  record.sample.seconds = seconds;
  return record;
}

// Two sizes; the default and two rings, three rounds each, in an order that is not that of rounds.
StoreContents Small() {
  StoreContents contents;
  contents.runs.emplace_back();
  contents.runs[0].machine.library = "nccl";
  for (const int round : {2, 0, 1}) {
    for (const uint64_t bytes : {1024, 2048}) {
      contents.records.push_back(Of("ring", 4, bytes, round, 2 + round));
      contents.records.push_back(Of("ring", 2, bytes, round, 4 + round));
      contents.records.push_back(Of("", 0, bytes, round, 1 + round));
    }
  }
  return contents;
}

measure::Subject Pair() {
  measure::Subject subject;
  subject.library = Library::kNccl;
  subject.nodes = 2;
  subject.ranks = 16;
  return subject;
}

measure::Trial Ring(int channels, uint64_t bytes = 1024) {
  measure::Trial trial;
  trial.bytes = bytes;
  trial.config = {kRing, kSimple, channels, 0};
  return trial;
}

std::unique_ptr<ReplayMeasurer> Replay(const StoreContents& contents,
                                       const ReplayOptions& options = {}) {
  auto replay = ReplayMeasurer::Create(contents, Pair(), options);
  EXPECT_TRUE(replay.ok()) << replay.status().message();
  return std::move(replay).value();
}

TEST(ReplayTest, ServesEachSampleOnceInTheOrderOfRounds) {
  const auto replay = Replay(Small());
  EXPECT_EQ(replay->held(), 18);
  EXPECT_EQ(replay->subject().backend, "replay");
  for (const double expected : {2, 3, 4}) {
    const Result<measure::Measurement> measurement = replay->Measure(Ring(4));
    ASSERT_TRUE(measurement.ok());
    EXPECT_EQ(measurement.value().seconds, expected);
    EXPECT_EQ(measurement.value().outcome, SampleOutcome::kFine);
  }
  EXPECT_EQ(replay->served(), 3);
  EXPECT_EQ(replay->Now(), 9);
  const Result<measure::Measurement> more = replay->Measure(Ring(4));
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(more.status().message(),
            "the dataset has no more than 3 samples of allreduce, 1KiB, ring/simple, 4 channels");
  // Another size is another point.
  EXPECT_TRUE(replay->Measure(Ring(4, 2048)).ok());
  const Result<measure::Measurement> unknown = replay->Measure(Ring(16));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), ErrorCode::kNotFound);
}

TEST(ReplayTest, ShufflesBySeedAndLosesNothing) {
  std::set<std::vector<double>> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto replay = Replay(Small(), {{}, seed, false});
    std::vector<double> order;
    for (int i = 0; i < 3; ++i) order.push_back(replay->Measure(Ring(4)).value().seconds);
    orders.insert(order);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<double>{2, 3, 4}));
  }
  EXPECT_GT(orders.size(), 2u);
}

TEST(ReplayTest, NeverServesWhatIsHeldOut) {
  ReplayOptions options;
  options.allowed = [](const dataset::Sample& sample) { return sample.round != 1; };
  const auto replay = Replay(Small(), options);
  EXPECT_EQ(replay->held(), 12);
  EXPECT_EQ(replay->Measure(Ring(4)).value().seconds, 2);
  EXPECT_EQ(replay->Measure(Ring(4)).value().seconds, 4);
  EXPECT_FALSE(replay->Measure(Ring(4)).ok());
}

TEST(ReplayTest, StartsAgainOnlyWhenTold) {
  const auto replay = Replay(Small(), {{}, 0, true});
  for (const double expected : {2, 3, 4, 2}) {
    EXPECT_EQ(replay->Measure(Ring(4)).value().seconds, expected);
  }
}

TEST(ReplayTest, ServesFailures) {
  StoreContents contents = Small();
  StoredSample failed = Of("tree", 4, 1024, 0, std::nan(""));
  failed.sample.outcome = SampleOutcome::kCrash;
  failed.sample.note = "rank 3 ended";
  contents.records.push_back(failed);
  const auto replay = Replay(contents);
  measure::Trial trial = Ring(4);
  trial.config.algorithm = kTree;
  const Result<measure::Measurement> measurement = replay->Measure(trial);
  ASSERT_TRUE(measurement.ok());
  EXPECT_EQ(measurement.value().outcome, SampleOutcome::kCrash);
  EXPECT_EQ(measurement.value().note, "rank 3 ended");
  EXPECT_EQ(replay->Now(), 0);
}

TEST(ReplayTest, ClockCountsCalls) {
  StoreContents contents = Small();
  for (StoredSample& record : contents.records) record.sample.iterations = 10;
  const auto replay = Replay(contents);
  ASSERT_TRUE(replay->Measure(Ring(4)).ok());
  EXPECT_EQ(replay->Now(), 20);
}

TEST(ReplayTest, RefusesWhatIsNoMeasurement) {
  StoreContents contents = Small();
  contents.records[0].sample.seconds = 0;
  auto replay = ReplayMeasurer::Create(contents, Pair());
  ASSERT_FALSE(replay.ok());
  EXPECT_EQ(replay.status().message(),
            "allreduce, 1KiB, ring/simple, 4 channels, round 2: 0 s is not a time");
  contents = Small();
  contents.records[0].sample.point.algorithm = "rng";
  replay = ReplayMeasurer::Create(contents, Pair());
  ASSERT_FALSE(replay.ok());
  EXPECT_NE(replay.status().message().find("did you mean 'ring'"), std::string::npos);
}

TEST(ReplayTest, TellsSubjectsApart) {
  StoreContents contents = Small();
  contents.runs.emplace_back();
  contents.runs[1].machine.library = "rccl";
  StoredSample other = Of("ring", 4, 1024, 0, 77);
  other.run = 1;
  contents.records.insert(contents.records.begin(), other);
  other.run = 0;
  other.sample.point.nodes = 4;
  other.sample.point.ranks = 32;
  contents.records.insert(contents.records.begin(), other);
  const std::vector<measure::Subject> subjects = SubjectsIn(contents);
  ASSERT_EQ(subjects.size(), 3u);
  EXPECT_EQ(subjects[0].library, Library::kNccl);
  EXPECT_EQ(subjects[0].nodes, 2);
  EXPECT_EQ(subjects[1].nodes, 4);
  EXPECT_EQ(subjects[2].library, Library::kRccl);
  const auto replay = Replay(contents);
  EXPECT_EQ(replay->held(), 18);
}

TEST(ContestsInTest, PutsTheDefaultFirst) {
  const Result<CallCasesFound> found = CallCasesIn(Small(), Pair());
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found.value().left_out.empty());
  ASSERT_EQ(found.value().call_cases.size(), 2u);
  for (const CallCase& call_case : found.value().call_cases) {
    ASSERT_EQ(call_case.candidates.size(), 3u);
    EXPECT_TRUE(call_case.candidates[0].config.IsDefault());
    EXPECT_EQ(call_case.candidates[1].config.channels, 2);
    EXPECT_EQ(call_case.candidates[2].config.channels, 4);
    EXPECT_TRUE(call_case.trial.config.IsDefault());
  }
  EXPECT_EQ(found.value().call_cases[1].trial.bytes, 2048u);
}

TEST(ContestsInTest, SaysWhereTheDefaultIsMissing) {
  StoreContents contents = Small();
  contents.records.push_back(Of("ring", 4, 4096, 0, 1));
  // An environment makes it another candidate, not the default.
  contents.records.push_back(Of("", 0, 4096, 0, 1));
  contents.records.back().sample.point.environment = "NCCL_NTHREADS=256";
  const Result<CallCasesFound> found = CallCasesIn(contents, Pair());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.value().call_cases.size(), 2u);
  ASSERT_EQ(found.value().left_out.size(), 1u);
  EXPECT_EQ(found.value().left_out[0], "allreduce, 4KiB: the library default was never measured");
}

TEST(ContestsInTest, EveryContenderCanBeMeasured) {
  const StoreContents contents = Small();
  const Result<CallCasesFound> found = CallCasesIn(contents, Pair());
  const auto replay = Replay(contents);
  SamplesByCandidate known;
  ASSERT_TRUE(
      search::SearchExhaustively(replay.get(), found.value().call_cases, {}, {}, &known).ok());
  EXPECT_EQ(replay->served(), 18);
  for (const auto& call_case : known) {
    for (const CandidateSamples& evidence : call_case) EXPECT_EQ(evidence.seconds.size(), 3u);
  }
}

}  // namespace
}  // namespace diapason::search
