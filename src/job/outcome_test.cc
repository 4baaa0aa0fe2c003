#include "job/outcome.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_file.h"
#include "base/text.h"
#include "journal/testing.h"

namespace diapason::job {
namespace {

using journal::JournalComm;
using journal::JournalRecord;
using journal::RecordKind;
using Agreement = JobOutcome::Agreement;

constexpr Config kTree{0, 2, 1};

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The journals of a job, written by hand.
class Job {
 public:
  explicit Job(int ranks) : ranks_(ranks) {}

  // A rank whose calls all have this answer.
  void Add(int rank, const Config& config, int calls = 10, const std::string& agreed = "") {
    JournalComm communicator;
    communicator.number = 1;
    communicator.id = 42;
    communicator.api = 5;
    communicator.library_version = 22809;
    communicator.shape = {1, ranks_};
    communicator.mode = "static";
    communicator.rank = rank;
    communicator.agreed = agreed;
    std::string text =
        Format("{{\"type\":\"journal\",\"version\":1,\"host\":\"h\",\"pid\":{}}}\n", 100 + rank) +
        CommunicatorLine(communicator) + "\n";
    for (int call = 1; call <= calls; ++call) {
      JournalRecord record = Record(config, call);
      record.kind = RecordKind::kDecision;
      record.reason = config.IsDefault() ? Reason::kNoRow : Reason::kRow;
      record.line = config.IsDefault() ? 0 : 2;
      record.applied = !config.IsDefault();
      text += RecordLine(record, Library::kNccl) + "\n";
    }
    Write(rank, text + more_ + (cut ? "" : "{\"type\":\"end\",\"dropped\":0}\n"));
  }

  // For the next Add: blocks of the default and of another configuration, then that one in use.
  void Learn(const Config& config, double seconds, double standard) {
    for (uint32_t epoch = 1; epoch <= 3; ++epoch) {
      for (const bool other : {false, true}) {
        JournalRecord record = Record(other ? config : Config{}, 0);
        record.kind = RecordKind::kReward;
        record.learning = true;
        record.epoch = epoch;
        record.index = epoch * 100 + (other ? 10 : 0);
        record.seconds = other ? seconds : standard;
        record.samples = 8;
        record.skew = 1;
        more_ += RecordLine(record, Library::kNccl) + "\n";
      }
    }
    JournalRecord last = Record(config, 400);
    last.kind = RecordKind::kDecision;
    last.learning = true;
    last.reason = Reason::kLearned;
    last.applied = true;
    last.epoch = 4;
    last.index = 500;
    more_ += RecordLine(last, Library::kNccl) + "\n";
  }

  void Write(int number, const std::string& text) {
    files.push_back(folder_.path() + Format("/{}.jsonl", number));
    std::ofstream(files.back()) << text;
  }

  std::vector<std::string> files;
  bool cut = false;

 private:
  static JournalRecord Record(const Config& config, int call) {
    JournalRecord record = journal::SomeRecord();
    record.bytes = 1u << 20;
    record.call = static_cast<uint32_t>(call);
    record.time_ns = static_cast<uint64_t>(call) * 1000;
    record.algorithm = static_cast<int8_t>(config.algorithm);
    record.protocol = static_cast<int8_t>(config.protocol);
    record.channels = static_cast<int16_t>(config.channels);
    return record;
  }

  int ranks_;
  TemporaryFolder folder_;
  std::string more_;
};

PreparedJob Prepared(JobMode mode = JobMode::kStatic) {
  PreparedJob job;
  job.mode = mode;
  job.command = ReadCommand({"./a"});
  return job;
}

TEST(OutcomeTest, AllRanksAgree) {
  Job job(2);
  job.Add(0, kTree);
  job.Add(1, kTree);
  const JobOutcome outcome = ReadOutcome(job.files);
  EXPECT_EQ(outcome.agreement, Agreement::kAgreed);
  EXPECT_EQ(outcome.calls, 10U);  // once, not once per rank
  EXPECT_EQ(outcome.ChosenText(Prepared()), "allreduce 1MiB: tree/simple, 1 channel, 10 calls");
  EXPECT_TRUE(Holds(outcome.AgreementText(Prepared()), "yes: 2 ranks, 10 calls"));
}

TEST(OutcomeTest, GainOfAPolicyIsWhatItSaysOfItself) {
  Job job(2);
  job.Add(0, kTree);
  job.Add(1, kTree);
  const JobOutcome outcome = ReadOutcome(job.files);
  PreparedJob prepared = Prepared();
  EXPECT_TRUE(Holds(outcome.GainText(prepared), "not known: "));
  EXPECT_TRUE(Holds(outcome.GainText(prepared), "--compare"));
  prepared.evidence = {{2, "verified: 1.62 x over 3 sizes"}, {9, "verified: another row"}};
  EXPECT_TRUE(Holds(outcome.GainText(prepared),
                    "The policy says of itself: line 2: verified: 1.62 x over 3 sizes"));
  EXPECT_FALSE(Holds(outcome.GainText(prepared), "another row"));
}

TEST(OutcomeTest, RanksThatDiffer) {
  Job job(2);
  job.Add(0, kTree);
  job.Add(1, Config{1, 2, 1});
  const JobOutcome outcome = ReadOutcome(job.files);
  EXPECT_TRUE(outcome.Differed());
  const std::string text = outcome.AgreementText(Prepared());
  EXPECT_TRUE(text.starts_with("NO: 2 ranks, 10 calls: the ranks chose differently for 10"))
      << text;
  EXPECT_TRUE(Holds(text, "rank 1 asked for ring/simple")) << text;
}

TEST(OutcomeTest, RanksThatAreMissing) {
  Job job(3);
  job.Add(0, kTree);
  job.Add(2, kTree);
  const JobOutcome outcome = ReadOutcome(job.files);
  EXPECT_EQ(outcome.agreement, Agreement::kPartly);
  EXPECT_TRUE(Holds(outcome.AgreementText(Prepared()), "missing: rank 1"));
  EXPECT_FALSE(outcome.Differed());
}

TEST(OutcomeTest, OneRankOnly) {
  Job alone(1);
  alone.Add(0, kTree);
  EXPECT_EQ(ReadOutcome(alone.files).agreement, Agreement::kNotNeeded);
  // The others' journals are elsewhere.
  Job first(2);
  first.Add(0, kTree);
  EXPECT_EQ(ReadOutcome(first.files).agreement, Agreement::kUnknown);
}

TEST(OutcomeTest, NothingWasSeen) {
  const JobOutcome outcome = ReadOutcome({});
  EXPECT_EQ(outcome.agreement, Agreement::kUnknown);
  EXPECT_TRUE(Holds(outcome.ChosenText(Prepared()), "no communicator was created"));
  EXPECT_TRUE(Holds(outcome.ChosenText(Prepared()), "NCCL_DEBUG=INFO"));
  EXPECT_TRUE(Holds(outcome.GainText(Prepared()), "not known"));
  JobOutcome failed = outcome;
  failed.status = 3;
  EXPECT_TRUE(Holds(failed.ChosenText(Prepared()), "the command ended with status 3 before that"));
}

TEST(OutcomeTest, NoRowApplies) {
  Job job(2);
  job.Add(0, Config{});
  job.Add(1, Config{});
  const JobOutcome outcome = ReadOutcome(job.files);
  EXPECT_TRUE(Holds(outcome.ChosenText(Prepared()),
                    "the library's own choice for all 10 calls (allreduce 1MiB): no row"));
  EXPECT_TRUE(outcome.GainText(Prepared()).starts_with("nothing: every call ran as without"));
  EXPECT_TRUE(Holds(outcome.ChosenText(Prepared(JobMode::kObserve)), "--observe"));
}

TEST(OutcomeTest, WhyRanksStoodAside) {
  Job job(2);
  job.Add(0, Config{}, 10, "the versions differ");
  job.Add(1, Config{}, 10, "the versions differ");
  EXPECT_TRUE(Holds(ReadOutcome(job.files).ChosenText(Prepared()), ": the versions differ"));
}

TEST(OutcomeTest, WhatWasLearned) {
  Job job(2);
  job.Learn(kTree, 50e-6, 60e-6);
  job.Add(0, Config{});
  job.Add(1, Config{});
  JobOutcome outcome = ReadOutcome(job.files);
  ASSERT_EQ(outcome.learned.size(), 1U);
  EXPECT_EQ(outcome.learned[0].config, kTree);
  EXPECT_NEAR(outcome.learned[0].gain, 1.2, 1e-9);
  const PreparedJob prepared = Prepared(JobMode::kLearn);
  EXPECT_TRUE(Holds(outcome.ChosenText(prepared), "allreduce up to 1MiB: tree/simple, 1 channel"));
  EXPECT_TRUE(outcome.GainText(prepared).starts_with(
      "allreduce up to 1MiB 1.20 x in trials, not confirmed; times of calls"));

  const std::string row =
      "# learned: 1.162 x as fast as the default (1.112 to 1.215), 50.0 us, 17 samples of 60, "
      "2026-11-15\nallreduce,524289,1048576,tree,simple,1,1,2,-1,-1\n";
  JobOutcome earlier = outcome;
  AddLearnedRows("", row, &outcome);
  EXPECT_TRUE(Holds(outcome.GainText(prepared), "1.16 x (1.11 to 1.22)"))
      << outcome.GainText(prepared);
  AddLearnedRows(row, row, &earlier);  // of a run before this one
  EXPECT_TRUE(Holds(earlier.GainText(prepared), "1.20 x in trials"));
  AddLearnedRows("", "damaged", &earlier);
  EXPECT_TRUE(Holds(earlier.GainText(prepared), "1.20 x in trials"));
}

TEST(OutcomeTest, JournalsThatWereCut) {
  Job job(2);
  job.cut = true;
  job.Add(0, Config{});
  job.Add(1, Config{});
  JobOutcome outcome = ReadOutcome(job.files);
  EXPECT_EQ(outcome.cut, 2U);
  EXPECT_TRUE(Holds(outcome.AgreementText(Prepared()),
                    "2 of 2 journals end before their process did (at DIAPASON_JOURNAL_LIMIT)"));
  // The file knows what the job has learned since.
  AddLearnedRows(
      "",
      "# learned: 1.162 x as fast as the default (1.112 to 1.215), 50.0 us, 17 samples of "
      "60, 2026-11-15\nallreduce,524289,1048576,tree,simple,1,1,2,-1,-1\n",
      &outcome);
  const PreparedJob prepared = Prepared(JobMode::kLearn);
  EXPECT_EQ(outcome.ChosenText(prepared),
            "allreduce up to 1MiB: tree/simple, 1 channel, at the end");
  EXPECT_TRUE(outcome.GainText(prepared).starts_with("allreduce up to 1MiB 1.16 x (1.11 to 1.22)"));
}

TEST(OutcomeTest, NothingIsLearnedYet) {
  Job job(2);
  job.Add(0, Config{});
  job.Add(1, Config{});
  const JobOutcome outcome = ReadOutcome(job.files);
  EXPECT_TRUE(
      Holds(outcome.GainText(Prepared(JobMode::kLearn)), "not known: nothing was measured"));
}

TEST(OutcomeTest, AJournalThatCannotBeRead) {
  Job job(2);
  job.Add(0, kTree);
  job.Add(1, kTree);
  job.Write(7, "no journal");
  job.files.push_back("/nonexistent/journal");
  const JobOutcome outcome = ReadOutcome(job.files);
  EXPECT_EQ(outcome.journals, 2U);
  EXPECT_EQ(outcome.unreadable.size(), 2U);
  EXPECT_EQ(outcome.agreement, Agreement::kPartly);
}

}  // namespace
}  // namespace diapason::job
