#include "journal/record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "journal/reader.h"
#include "journal/testing.h"

namespace diapason::journal {
namespace {

TEST(RecordTest, EveryByteGoesThroughAJournalAndStaysOneCharacter) {
  for (int byte = 0; byte < 256; ++byte) {
    JournalComm communicator = RcclCommunicator(3);
    communicator.policy = std::string(1, static_cast<char>(byte));
    const std::string text = JournalWith(CommunicatorLine(communicator) + "\n");
    const JournalContents contents = ParseJournal(text, "j").value();
    ASSERT_EQ(contents.bad_lines, 0u) << byte << ": " << contents.first_bad_why;
    const std::string& back = contents.Find(3)->policy;
    if (byte < 128) {
      EXPECT_EQ(back, communicator.policy) << byte;
    } else {
      EXPECT_EQ(back.size(), 2u) << byte;  // U+0080 to U+00FF in UTF-8
    }
  }
}

TEST(RecordTest, EveryFieldOfARecordComesBack) {
  JournalRecord record;
  record.time_ns = UINT64_MAX;
  record.bytes = UINT64_MAX - 1;
  record.communicator = 2;
  record.call = UINT32_MAX;
  record.line = INT32_MAX;
  record.pipe_ops = INT32_MIN;
  record.collective = static_cast<uint8_t>(Collective::kReduceScatter);
  record.reason = Reason::kTreeTooSmall;
  record.applied = true;
  record.reg_buff = -1;
  record.algorithm = kNvlsTree;
  record.protocol = kSimple;
  record.channels = 127;
  record.default_algorithm = kRing;
  record.default_protocol = kLl128;
  record.learning = true;
  record.captured = true;
  record.epoch = UINT32_MAX;
  record.index = UINT64_MAX;
  record.table_algorithms = 7;
  record.table_protocols = 4;
  for (int i = 0; i < 28; ++i) record.table[i] = 0.1f * static_cast<float>(i);
  record.table[0] = -1.0f;
  record.table[1] = std::numeric_limits<float>::max();
  record.table[2] = std::numeric_limits<float>::denorm_min();
  record.table[3] = std::nanf("");

  const std::string text = JournalWith(RecordLine(record, Library::kRccl) + "\n");
  const JournalContents contents = ParseJournal(text, "j").value();
  ASSERT_EQ(contents.bad_lines, 0u) << contents.first_bad_why;
  ASSERT_EQ(contents.records.size(), 1u);
  const JournalRecord& back = contents.records[0];
  EXPECT_EQ(back.time_ns, record.time_ns);
  EXPECT_EQ(back.bytes, record.bytes);
  EXPECT_EQ(back.communicator, record.communicator);
  EXPECT_EQ(back.call, record.call);
  EXPECT_EQ(back.line, record.line);
  EXPECT_EQ(back.pipe_ops, record.pipe_ops);
  EXPECT_EQ(back.collective, record.collective);
  EXPECT_EQ(back.reason, record.reason);
  EXPECT_EQ(back.applied, record.applied);
  EXPECT_EQ(back.reg_buff, record.reg_buff);
  EXPECT_EQ(back.algorithm, record.algorithm);
  EXPECT_EQ(back.protocol, record.protocol);
  EXPECT_EQ(back.channels, record.channels);
  EXPECT_EQ(back.default_algorithm, record.default_algorithm);
  EXPECT_EQ(back.default_protocol, record.default_protocol);
  EXPECT_EQ(back.learning, record.learning);
  EXPECT_EQ(back.captured, record.captured);
  EXPECT_EQ(back.epoch, record.epoch);
  EXPECT_EQ(back.index, record.index);
  EXPECT_EQ(back.table_algorithms, record.table_algorithms);
  EXPECT_EQ(back.table_protocols, record.table_protocols);
  EXPECT_TRUE(std::isnan(back.table[3])) << "JSON has no such number";
  for (int i = 0; i < 28; ++i) {
    if (i == 3) continue;
    EXPECT_EQ(back.table[i], record.table[i]) << i;
  }
}

// One record of this kind, through its line and back.
JournalRecord ThereAndBack(const JournalRecord& record, Library library) {
  const std::string text = JournalWith(RecordLine(record, library) + "\n");
  const JournalContents contents = ParseJournal(text, "j").value();
  EXPECT_EQ(contents.bad_lines, 0u) << contents.first_bad_why << ": " << text;
  return contents.records.size() == 1 ? contents.records[0] : JournalRecord();
}

TEST(RecordTest, EveryFieldOfARunComesBack) {
  JournalRecord record = SomeRecord();
  record.kind = RecordKind::kRan;
  record.communicator = 2;
  record.time_ns = 1794712906828731404;
  record.bytes = 4096;
  record.call = 12;
  record.algorithm = kRcclDirect;  // cannot be chosen, but runs
  record.protocol = kLl128;
  record.channels = 64;
  record.sequence = UINT64_MAX;
  record.captured = true;
  record.gpu_start_ns = UINT64_MAX - 1;
  record.seconds = 0.012345678;
  const JournalRecord back = ThereAndBack(record, Library::kRccl);
  EXPECT_EQ(back.kind, RecordKind::kRan);
  EXPECT_EQ(back.time_ns, record.time_ns);
  EXPECT_EQ(back.bytes, record.bytes);
  EXPECT_EQ(back.call, record.call);
  EXPECT_EQ(back.algorithm, record.algorithm);
  EXPECT_EQ(back.protocol, record.protocol);
  EXPECT_EQ(back.channels, record.channels);
  EXPECT_EQ(back.sequence, record.sequence);
  EXPECT_TRUE(back.captured);
  EXPECT_EQ(back.gpu_start_ns, record.gpu_start_ns);
  EXPECT_DOUBLE_EQ(back.seconds, record.seconds);

  JournalRecord untimed = SomeRecord();
  untimed.kind = RecordKind::kRan;
  const std::string line = RecordLine(untimed, Library::kNccl);
  for (const char* unused : {"us\"", "gpu_start_ns", "captured", "pipe_ops", "reason", "index"}) {
    EXPECT_FALSE(Holds(line, unused)) << line;
  }
  EXPECT_EQ(ThereAndBack(untimed, Library::kNccl).seconds, 0);
}

TEST(RecordTest, EveryFieldOfARewardComesBack) {
  JournalRecord record = SomeRecord();
  record.kind = RecordKind::kReward;
  record.bytes = 1 << 20;
  record.epoch = 7;
  record.index = uint64_t{1} << 60;
  record.algorithm = kTree;
  record.protocol = kSimple;
  record.channels = 8;
  record.seconds = 1.5e-5;
  record.samples = 12;
  record.skew = 1.25f;
  record.iteration = true;
  const JournalRecord back = ThereAndBack(record, Library::kNccl);
  EXPECT_EQ(back.kind, RecordKind::kReward);
  EXPECT_TRUE(back.learning);
  EXPECT_TRUE(back.iteration);
  EXPECT_EQ(back.epoch, record.epoch);
  EXPECT_EQ(back.index, record.index);
  EXPECT_EQ(back.algorithm, kTree);
  EXPECT_EQ(back.protocol, kSimple);
  EXPECT_EQ(back.channels, 8);
  EXPECT_DOUBLE_EQ(back.seconds, record.seconds);
  EXPECT_EQ(back.samples, record.samples);
  EXPECT_EQ(back.skew, record.skew);
}

TEST(RecordTest, ABypassedCallNeedsNoNumberOfItsCollective) {
  JournalRecord record = SomeRecord();
  record.kind = RecordKind::kBypassed;
  record.captured = true;
  EXPECT_EQ(ThereAndBack(record, Library::kNccl).kind, RecordKind::kBypassed);
  EXPECT_TRUE(ThereAndBack(record, Library::kNccl).captured);
  for (const uint8_t collective :
       {static_cast<uint8_t>(Collective::kAllToAll), kNamelessCollective}) {
    record.collective = collective;
    EXPECT_EQ(ThereAndBack(record, Library::kNccl).collective, collective);
  }
  JournalRecord decision = SomeRecord();
  decision.collective = kNamelessCollective;
  const std::string text = JournalWith(RecordLine(decision, Library::kNccl));
  EXPECT_EQ(ParseJournal(text, "j").value().bad_lines, 1u) << "a question has a collective";
}

TEST(RecordTest, AStepHasItsTimeAndIsNoRecordOfACommunicator) {
  JournalRecord record;
  record.kind = RecordKind::kStep;
  record.time_ns = 1234567890123456789;
  const auto read =
      ParseJournal(JournalWith(RecordLine(record, Library::kNccl) + "\n" + "{\"type\":\"step\"}\n" +
                               "{\"type\":\"step\",\"time_ns\":-1}\n"),
                   "j");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().steps, std::vector<uint64_t>{1234567890123456789});
  EXPECT_TRUE(read.value().records.empty());
  EXPECT_EQ(read.value().bad_lines, 2u);
}

TEST(RecordTest, TheCallsOfAGroupComeBack) {
  JournalRecord record = SomeRecord();
  for (const uint16_t calls : {0, 1, 2, 65535}) {
    record.group_calls = calls;
    const auto read = ParseJournal(JournalWith(RecordLine(record, Library::kNccl) + "\n"), "j");
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(read.value().records.size(), 1u);
    EXPECT_EQ(read.value().records[0].group_calls, calls > 1 ? calls : 0);
  }
}

TEST(RecordTest, ACommunicatorsLifeComesBack) {
  JournalComm communicator;
  communicator.number = 3;
  communicator.created_ns = 11;
  std::string text = kFirstLine + CommunicatorLine(communicator) + "\n";
  communicator.ended_ns = 22;
  text += CommunicatorLine(communicator) + "\n";
  const auto read = ParseJournal(text, "j");
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().communicators.size(), 1u);
  EXPECT_EQ(read.value().communicators[0].created_ns, 11u);
  EXPECT_EQ(read.value().communicators[0].ended_ns, 22u);
}

}  // namespace
}  // namespace diapason::journal
