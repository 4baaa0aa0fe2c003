#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "job_profile/job_profile.h"
#include "journal/record.h"

namespace diapason::job_profile {
namespace {

using journal::JournalRecord;
using journal::RecordKind;

constexpr uint64_t kMs = 1000000;

enum class Turn { kDefault, kPolicy, kNone };

// The journal of one rank of a job in turns: iterations with one call of 64 KiB that the policy
// has a row for, and one of 1 MiB that it has none for.
class Writer {
 public:
  explicit Writer(int rank) {
    text_ = Format("{{\"type\":\"journal\",\"version\":1,\"host\":\"h\",\"pid\":{}}}\n", rank + 7);
    journal::JournalComm comm;
    comm.number = 1;
    comm.id = 42;
    comm.api = 5;
    comm.library_version = 22809;
    comm.shape = {1, 2};
    comm.rank = rank;
    text_ += journal::CommunicatorLine(comm) + "\n";
  }

  // An iteration of 10 ms with the default and of 8 ms with the policy: its first call takes 3 or
  // 1 ms, its second 1 ms.
  void Iteration(Turn turn, bool mixed = false) {
    const bool policy = turn == Turn::kPolicy;
    Call(65536, policy ? 1e-3 : 3e-3, turn, 0);
    if (mixed) Call(65536, 1e-3, policy ? Turn::kDefault : Turn::kPolicy, 3 * kMs);
    Call(1 << 20, 1e-3, Turn::kNone, 5 * kMs);
    now_ += (policy ? 8 : 10) * kMs;
    JournalRecord step;
    step.kind = RecordKind::kStep;
    step.time_ns = now_ - kMs / 2;
    Line(step);
  }

  journal::JournalContents Read() const {
    Result<journal::JournalContents> read =
        journal::ParseJournal(text_ + "{\"type\":\"end\",\"dropped\":0}\n", "j");
    EXPECT_TRUE(read.ok());
    return std::move(read).value();
  }

 private:
  void Call(uint64_t bytes, double seconds, Turn turn, uint64_t after) {
    JournalRecord record;
    record.kind = RecordKind::kDecision;
    record.communicator = 1;
    record.call = ++calls_;
    record.collective = static_cast<uint8_t>(Collective::kAllReduce);
    record.bytes = bytes;
    record.time_ns = now_ + after;
    record.group_calls = 1;
    if (turn != Turn::kNone) {
      record.learning = true;
      record.reason = turn == Turn::kDefault ? Reason::kDefaultTurn : Reason::kRow;
      record.applied = turn == Turn::kPolicy;
      record.line = 1;
    }
    Line(record);
    record.kind = RecordKind::kRan;
    record.sequence = calls_;
    record.gpu_start_ns = now_ + after + kMs / 10;
    record.seconds = seconds;
    Line(record);
  }
  void Line(const JournalRecord& record) {
    text_ += journal::RecordLine(record, Library::kNccl) + "\n";
  }

  std::string text_;
  uint64_t now_ = 1000 * kMs;
  uint32_t calls_ = 0;
};

void WriteTurns(Writer* writer, int turns) {
  for (int i = 0; i < 5; ++i) writer->Iteration(Turn::kNone);
  for (int turn = 0; turn < turns; ++turn) {
    const Turn side = turn % 2 == 0 ? Turn::kDefault : Turn::kPolicy;
    writer->Iteration(side, true);
    for (int i = 0; i < 12; ++i) writer->Iteration(side);
  }
}

TEST(SidedProfiles, EachSideHasItsOwnTimes) {
  ProfileMaker maker;
  for (int rank = 0; rank < 2; ++rank) {
    Writer writer(rank);
    WriteTurns(&writer, 6);
    maker.Add(Format("j{}", rank), writer.Read());
  }
  Result<SidedProfiles> made = maker.FinishSides();
  ASSERT_TRUE(made.ok()) << made.status().message();
  const JobProfile& by_default = made.value().by_default;
  const JobProfile& by_policy = made.value().by_policy;
  EXPECT_NEAR(by_default.iteration, 10e-3, 1e-6);
  EXPECT_NEAR(by_policy.iteration, 8e-3, 1e-6);
  EXPECT_NEAR(by_default.times.total, 4e-3, 1e-6);
  EXPECT_NEAR(by_policy.times.total, 2e-3, 1e-6);
  // Three turns of each, of twelve iterations that are not mixed, without two at both ends.
  EXPECT_EQ(by_default.iterations, 3 * 8u);
  EXPECT_EQ(by_default.calls, 2 * 3 * 8 * 2u);
  ASSERT_EQ(by_default.classes.size(), 2u);
  EXPECT_EQ(by_default.classes[0].most_bytes, 65536u);
  EXPECT_NEAR(by_default.classes[0].times.total, 3e-3, 1e-6);
  EXPECT_NEAR(by_default.classes[0].calls_per_iteration, 1, 1e-9);
  EXPECT_EQ(by_policy.ranks.size(), 2u);
}

// A stage of a pipeline whose calls no row matches.
TEST(SidedProfiles, ARankThatTakesNoTurnsHasNoPart) {
  ProfileMaker maker;
  Writer turns(0);
  WriteTurns(&turns, 6);
  maker.Add("j0", turns.Read());
  Writer none(1);
  for (int i = 0; i < 40; ++i) none.Iteration(Turn::kNone);
  maker.Add("j1", none.Read());
  Result<SidedProfiles> made = maker.FinishSides();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value().by_policy.ranks.size(), 1u);
  EXPECT_NEAR(made.value().by_policy.times.total, 2e-3, 1e-6);
}

TEST(SidedProfiles, NeedTurnsOfBoth) {
  ProfileMaker maker;
  Writer writer(0);
  WriteTurns(&writer, 1);
  maker.Add("j0", writer.Read());
  const Result<SidedProfiles> made = maker.FinishSides();
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("in turns of the policy alone"), std::string::npos);
  EXPECT_FALSE(ProfileMaker().FinishSides().ok());
}

}  // namespace
}  // namespace diapason::job_profile
