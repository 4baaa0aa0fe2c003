#include "dataset/import_journal.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "journal/record.h"

namespace diapason::dataset {
namespace {

using journal::JournalRecord;
using journal::RecordKind;

// A journal of one rank of two, written line by line.
class Rank {
 public:
  explicit Rank(int rank, const std::string& host = "h") {
    text_ = Format(
        "{{\"type\":\"journal\",\"version\":1,\"diapason\":\"0.1.0\",\"host\":\"{}\",\"pid\":{},"
        "\"time_ns\":1700000000000000000}}\n",
        host, rank + 1);
    journal::JournalComm communicator;
    communicator.number = 1;
    communicator.id = 42;
    communicator.library_version = 22809;
    communicator.shape = {1, 2};
    communicator.rank = rank;
    text_ += CommunicatorLine(communicator) + "\n";
  }
  // A call that asked for `asked`, and ran `ran` in `us` microseconds.
  Rank& Call(const Config& asked, const Config& ran, double us, Reason reason = Reason::kRow) {
    journal::JournalRecord decision = Some(RecordKind::kDecision, asked);
    decision.call = ++calls_;
    decision.applied = !asked.IsDefault();
    decision.reason = reason;
    journal::JournalRecord run = Some(RecordKind::kRan, ran);
    run.call = run.sequence = calls_;
    run.seconds = us * 1e-6;
    return Line(decision).Line(run);
  }
  Rank& Line(const journal::JournalRecord& record) {
    text_ += RecordLine(record, Library::kNccl) + "\n";
    return *this;
  }
  static journal::JournalRecord Some(RecordKind kind, const Config& config) {
    journal::JournalRecord record;
    record.kind = kind;
    record.time_ns = 1700000000500000000;
    record.communicator = 1;
    record.collective = static_cast<uint8_t>(Collective::kAllReduce);
    record.bytes = 4096;
    record.algorithm = static_cast<int8_t>(config.algorithm);
    record.protocol = static_cast<int8_t>(config.protocol);
    record.channels = static_cast<int16_t>(config.channels);
    return record;
  }
  std::string Text() const { return text_ + "{\"type\":\"end\",\"dropped\":0}\n"; }

 private:
  std::string text_;
  uint32_t calls_ = 0;
};

Result<Import> Read(const std::vector<std::string>& texts, const ImportOptions& options = {}) {
  JournalImport journals(options);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (Status added = journals.Add(texts[i], Format("j{}", i)); !added.ok()) return added;
  }
  return journals.Finish();
}

bool Says(const Import& import, const std::string& what) {
  return Join(import.messages, "\n").find(what) != std::string::npos;
}

const Config kRingLl{kRing, kLl, 2};
const Config kTreeSimple{kTree, kSimple, 8};
const Config kRingSimple{kRing, kSimple, 8};

TEST(ImportJournalTest, TheSlowestRankCountsAndWhatRanIsTheConfiguration) {
  Rank zero(0);
  Rank one(1, "i");
  zero.Call({}, kRingLl, 10).Call(kRingSimple, kRingSimple, 20);
  one.Call({}, kRingLl, 12).Call(kRingSimple, kRingSimple, 15);
  // Asked for a pair without channels; the library ran another pair.
  zero.Call({kTree, kSimple, 0}, kRingLl, 30);
  one.Call({kTree, kSimple, 0}, kRingLl, 30);
  const Import import = Read({zero.Text(), one.Text()}).value();
  EXPECT_EQ(import.format, "2 journals");
  ASSERT_EQ(import.runs.size(), 1u);
  const dataset::SampleRun& run = import.runs[0].run;
  EXPECT_EQ(run.state, dataset::SampleRun::State::kDone);
  EXPECT_EQ(run.origin, "j0 and 1 more");
  EXPECT_EQ(run.started, 1.7e9);
  EXPECT_EQ(run.machine.library, "nccl");
  EXPECT_EQ(run.machine.library_version, "2.28.9");
  EXPECT_EQ(run.machine.hosts, "h,i");
  EXPECT_EQ(run.machine.tool, "diapason 0.1.0");
  EXPECT_EQ(run.machine.topology, "1 node, 2 ranks");
  const std::vector<Sample>& samples = import.runs[0].samples;
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_TRUE(samples[0].point.IsDefault()) << "nothing was asked: " << samples[0].point.algorithm;
  EXPECT_NEAR(samples[0].seconds, 12e-6, 1e-12);
  EXPECT_EQ(samples[0].point.bytes, 4096u);
  EXPECT_EQ(samples[0].point.ranks, 2);
  EXPECT_EQ(samples[1].point.ConfigText(), "ring/simple, 8 channels");
  EXPECT_NEAR(samples[1].seconds, 20e-6, 1e-12);
  EXPECT_EQ(samples[2].point.ConfigText(), "ring/ll") << "channels were left to the library";
  EXPECT_NEAR(samples[2].at, 1700000000.5, 1e-3);
}

TEST(ImportJournalTest, AnyOrderOfTheJournalsIsTheSameRunAndNoneMayComeTwice) {
  Rank zero(0);
  Rank one(1);
  zero.Call({}, kRingLl, 10);
  one.Call({}, kRingLl, 11);
  const Import forth = Read({zero.Text(), one.Text()}).value();
  const Import back = Read({one.Text(), zero.Text()}).value();
  EXPECT_EQ(forth.runs[0].run.id, back.runs[0].run.id);
  EXPECT_NE(forth.runs[0].run.id, Read({zero.Text()}).value().runs[0].run.id);
  EXPECT_EQ(Read({zero.Text(), zero.Text()}).status().message(), "'j1' is there twice");
}

TEST(ImportJournalTest, WhatCannotBeTrustedIsLeftOutAndCounted) {
  Rank zero(0);
  Rank one(1);
  zero.Call({}, kRingLl, 10);
  one.Call({}, kRingLl, 10);
  zero.Call({}, kRingLl, 10, Reason::kWarmUp);
  one.Call({}, kRingLl, 10, Reason::kWarmUp);
  zero.Call({}, kRingLl, 10);
  one.Call({}, kRingSimple, 10);
  zero.Call({}, {kKeep, kKeep, 0}, 10);
  one.Call({}, {kKeep, kKeep, 0}, 10);
  zero.Call({}, kRingLl, 10);
  zero.Call(kTreeSimple, kTreeSimple, 10);
  one.Call(kTreeSimple, kTreeSimple, 10);
  const Import import = Read({zero.Text(), one.Text()}).value();
  EXPECT_EQ(import.runs[0].samples.size(), 1u);
  for (const char* message :
       {"2 runs left out: a tree's kernel is stamped", "1 run left out: not timed on every rank",
        "1 run left out: the ranks differ", "1 run left out: a first use",
        "1 run left out: no name is known"}) {
    EXPECT_TRUE(Says(import, message)) << message << " in " << Join(import.messages, "\n");
  }
  EXPECT_TRUE(Says(Read({zero.Text()}).value(), "has 2 ranks, and journals of 1"));
}

TEST(ImportJournalTest, RewardsStandInWhereNothingWasTimed) {
  journal::JournalRecord reward = Rank::Some(RecordKind::kReward, kTreeSimple);
  reward.seconds = 14e-6;
  reward.samples = 9;
  journal::JournalRecord iteration = Rank::Some(RecordKind::kReward, {});
  iteration.seconds = 2e-3;
  iteration.iteration = true;
  journal::JournalRecord question = Rank::Some(RecordKind::kDecision, {});
  question.bytes = 3000;  // of the same band
  Rank zero(0);
  Rank one(1);
  zero.Line(question).Line(reward).Line(iteration);
  one.Line(question).Line(reward).Line(iteration);
  const Import import = Read({zero.Text(), one.Text()}).value();
  const std::vector<Sample>& samples = import.runs[0].samples;
  ASSERT_EQ(samples.size(), 2u) << "each once, though two ranks tell";
  EXPECT_EQ(samples[0].point.bytes, 3000u) << "the size that was asked about, not the band's end";
  EXPECT_EQ(samples[0].point.ConfigText(), "tree/simple, 8 channels");
  EXPECT_EQ(samples[0].iterations, 9);
  EXPECT_EQ(samples[0].point.kind, Point::Kind::kCollective);
  EXPECT_EQ(samples[1].point.kind, Point::Kind::kIteration);

  question.bytes = 4000;
  zero.Line(question).Call({}, kRingLl, 10);
  one.Line(question).Call({}, kRingLl, 10);
  const Import timed = Read({zero.Text(), one.Text()}).value();
  ASSERT_EQ(timed.runs[0].samples.size(), 1u);
  EXPECT_NEAR(timed.runs[0].samples[0].seconds, 10e-6, 1e-12) << "times before rewards";
}

TEST(ImportJournalTest, RewardsOfSeveralSizesAreDropped) {
  journal::JournalRecord reward = Rank::Some(RecordKind::kReward, kTreeSimple);
  reward.seconds = 14e-6;
  journal::JournalRecord question = Rank::Some(RecordKind::kDecision, {});
  Rank zero(0);
  zero.Line(question).Line(reward);
  question.bytes = 2100;
  zero.Line(question);
  EXPECT_FALSE(Read({zero.Text()}).ok());
}

TEST(ImportJournalTest, ManySamplesAreThinnedEvenly) {
  Rank zero(0);
  for (int i = 0; i < 2500; ++i) zero.Call({}, kRingLl, 10 + i);
  const Import import = Read({zero.Text()}).value();
  const std::vector<Sample>& samples = import.runs[0].samples;
  ASSERT_EQ(samples.size(), JournalImport::kMostSamples);
  EXPECT_NEAR(samples.front().seconds, 10e-6, 1e-12);
  EXPECT_NEAR(samples[500].seconds, 1260e-6, 1e-9);
  for (size_t i = 0; i < samples.size(); ++i) ASSERT_EQ(samples[i].round, static_cast<int>(i));
  EXPECT_TRUE(Says(import, "1500 samples left out"));
}

TEST(ImportJournalTest, WhatContradictsTheOptionsIsAnError) {
  Rank zero(0);
  zero.Call({}, kRingLl, 10);
  ImportOptions options;
  options.ranks = 4;
  EXPECT_EQ(Read({zero.Text()}, options).status().message(),
            "the file says 2 ranks, --ranks says 4");
  options = {};
  options.library = "rccl";
  EXPECT_EQ(Read({zero.Text()}, options).status().message(),
            "the journal says nccl, --library says rccl");
  EXPECT_FALSE(Read({"rubbish"}).ok());
  EXPECT_FALSE(Read({Rank(0).Text()}).ok()) << "nothing was timed";
  const std::string hint = ImportText(zero.Text(), "j", {}).status().message();
  EXPECT_NE(hint.find("--journal FILE"), std::string::npos) << hint;
}

}  // namespace
}  // namespace diapason::dataset
