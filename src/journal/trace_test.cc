#include "journal/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "journal/learning.h"

namespace diapason::journal {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kStart = 1794712905062274090;

JournalRecord SomeRecord(RecordKind kind, uint64_t after_ns) {
  JournalRecord record;
  record.kind = kind;
  record.time_ns = kStart + after_ns;
  record.communicator = 1;
  record.bytes = 1 << 20;
  record.collective = static_cast<uint8_t>(Collective::kAllReduce);
  record.algorithm = kRing;
  record.protocol = kSimple;
  record.applied = true;
  return record;
}

JournalContents SomeJournal(int rank) {
  JournalContents contents;
  contents.version = 1;
  contents.host = "node \"0\"\n";
  contents.pid = 7;
  contents.started_ns = kStart;
  JournalComm communicator;
  communicator.number = 1;
  communicator.rank = rank;
  communicator.shape = {1, 2};
  communicator.name = "dp";
  contents.communicators.push_back(communicator);
  contents.by_number[1] = 0;
  return contents;
}

// The text of a trace of these journals, as one value.
Json Trace(const std::vector<JournalContents>& journals) {
  std::string text;
  TraceWriter writer([&](std::string_view piece) {
    text += piece;
    return Status();
  });
  for (const JournalContents& contents : journals) EXPECT_TRUE(writer.Add("j", contents).ok());
  EXPECT_TRUE(writer.Finish().ok());
  Json trace = Json::parse(text, nullptr, false);
  EXPECT_FALSE(trace.is_discarded()) << text;
  EXPECT_EQ(trace["traceEvents"].size(), writer.events());
  return trace;
}

std::vector<Json> Events(const Json& trace, const char* phase) {
  std::vector<Json> events;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) events.push_back(event);
  }
  return events;
}

TEST(TraceTest, NothingIsATraceToo) {
  EXPECT_EQ(Trace({})["traceEvents"].size(), 0u);
  EXPECT_GT(Trace({SomeJournal(0)})["traceEvents"].size(), 0u);
}

TEST(TraceTest, EveryJournalIsAProcessNamedByItsRank) {
  const Json trace = Trace({SomeJournal(0), SomeJournal(1), SomeJournal(-1)});
  std::vector<std::string> names;
  std::vector<int> processes;
  for (const Json& event : Events(trace, "M")) {
    if (event["name"] != "process_name") continue;
    names.push_back(event["args"]["name"]);
    processes.push_back(event["pid"]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"rank 0, node \"0\"\n, 7", "rank 1, node \"0\"\n, 7",
                                             "j, node \"0\"\n, 7"}));
  EXPECT_EQ(processes, (std::vector<int>{1, 2, 3}));
}

TEST(TraceTest, GpuTimesMoveToTheHostsClockByTheSmallestDifference) {
  JournalContents contents = SomeJournal(0);
  for (int i = 0; i < 3; ++i) {
    // The GPU's clock has its own zero; records come 5, 2 and 9 us after the runs.
    const uint64_t late[] = {5000, 2000, 9000};
    const auto start = static_cast<uint64_t>(100000 * (i + 1));
    JournalRecord run = SomeRecord(RecordKind::kRan, start + 20000 + late[i]);
    run.gpu_start_ns = start;
    run.seconds = 20e-6;
    contents.records.push_back(run);
  }
  const Json trace = Trace({contents});
  const std::vector<Json> runs = Events(trace, "X");
  ASSERT_EQ(runs.size(), 3u);
  const uint64_t base = std::stoull(trace["otherData"]["start_ns"].get<std::string>());
  for (int i = 0; i < 3; ++i) {
    const double expected = static_cast<double>(kStart - base + 2000 + 100000 * (i + 1)) / 1000;
    EXPECT_NEAR(runs[i]["ts"].get<double>(), expected, 0.002);
    EXPECT_NEAR(runs[i]["dur"].get<double>(), 20, 0.002);
    EXPECT_EQ(runs[i]["name"], "allreduce 1MiB: ring/simple");
  }
}

TEST(TraceTest, DecisionsEpochsAndRewardsAreThere) {
  JournalContents contents = SomeJournal(0);
  for (uint32_t call = 1; call <= 4; ++call) {
    JournalRecord decision = SomeRecord(RecordKind::kDecision, call * 1000);
    decision.call = call;
    decision.learning = true;
    decision.index = call;
    decision.epoch = call / 3;
    contents.records.push_back(decision);
  }
  JournalRecord reward = SomeRecord(RecordKind::kReward, 9000);
  reward.seconds = 12.5e-6;
  contents.records.push_back(reward);
  contents.records.push_back(SomeRecord(RecordKind::kBypassed, 9500));
  JournalRecord untimed = SomeRecord(RecordKind::kRan, 9700);
  untimed.call = 4;
  untimed.algorithm = kTree;
  contents.records.push_back(untimed);
  const Json trace = Trace({contents});
  std::map<std::string, int> categories;
  for (const Json& event : Events(trace, "i")) ++categories[event["cat"].get<std::string>()];
  EXPECT_EQ(categories,
            (std::map<std::string, int>{
                {"bypassed", 1}, {"decision", 4}, {"epoch", 2}, {"reward", 1}, {"run", 1}}));
  const std::vector<Json> counters = Events(trace, "C");
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0]["args"]["ring/simple"], 12.5);
  EXPECT_TRUE(Events(trace, "i").back()["args"]["otherwise"].get<bool>());
}

TEST(TraceTest, ASinkThatFailsEndsTheWriting) {
  JournalContents contents = SomeJournal(0);
  contents.records.assign(5000, SomeRecord(RecordKind::kDecision, 0));
  int pieces = 0;
  TraceWriter writer([&](std::string_view) {
    ++pieces;
    return IoError("full");
  });
  EXPECT_EQ(writer.Add("j", contents).message(), "full");
  EXPECT_EQ(pieces, 1);
}

TEST(LearningTest, ArmsAreComparedWithTheDefaultOfTheirOwnEpochOnly) {
  JournalContents contents = SomeJournal(0);
  const auto reward = [&](uint32_t epoch, uint64_t index, int algorithm, double us) {
    JournalRecord record = SomeRecord(RecordKind::kReward, index);
    record.epoch = epoch;
    record.index = index;
    record.algorithm = static_cast<int8_t>(algorithm);
    record.protocol = static_cast<int8_t>(algorithm == kKeep ? kKeep : kSimple);
    record.seconds = us * 1e-6;
    record.samples = 4;
    record.skew = 1.5f;
    contents.records.push_back(record);
  };
  // The whole machine was twice as slow in epoch 3.
  reward(2, 20, kTree, 9);
  reward(2, 10, kKeep, 10);
  reward(3, 30, kKeep, 20);
  reward(3, 40, kTree, 18);
  reward(3, 50, kRing, 30);
  reward(4, 60, kRing, 5);
  JournalRecord decision = SomeRecord(RecordKind::kDecision, 100);
  decision.learning = true;
  decision.epoch = 5;
  decision.index = 70;
  decision.reason = Reason::kLearned;
  decision.algorithm = kTree;
  contents.records.push_back(decision);
  decision.reason = Reason::kTrying;
  decision.index = 71;
  decision.algorithm = kNvls;
  contents.records.push_back(decision);

  const std::vector<JournalContext> contexts = LearningOf(contents);
  ASSERT_EQ(contexts.size(), 1u);
  EXPECT_EQ(contexts[0].band, 20);
  const std::vector<LearningArm>& arms = contexts[0].arms;
  ASSERT_EQ(arms.size(), 4u);
  EXPECT_TRUE(arms[0].config.IsDefault());
  EXPECT_EQ(arms[1].config.algorithm, kTree);
  EXPECT_NEAR(arms[1].ratio, 0.9, 1e-9);
  EXPECT_EQ(arms[1].blocks, 2u);
  EXPECT_EQ(arms[1].samples, 8u);
  EXPECT_EQ(arms[1].state, LearningArm::State::kInUse);
  EXPECT_NEAR(arms[2].ratio, 1.5, 1e-9) << "epoch 4 had no default to compare with";
  EXPECT_EQ(arms[2].state, LearningArm::State::kLeft);
  EXPECT_EQ(arms[3].config.algorithm, kNvls);
  EXPECT_EQ(arms[3].state, LearningArm::State::kTried);
  ASSERT_EQ(contexts[0].epochs.size(), 4u);
  EXPECT_EQ(contexts[0].epochs[0].blocks[0].first, 10u) << "in the order of their calls";
  EXPECT_EQ(contexts[0].epochs[3].decisions, 2u);
}

}  // namespace
}  // namespace diapason::journal
