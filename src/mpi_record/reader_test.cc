#include "mpi_record/reader.h"

#include <gtest/gtest.h>

#include "mpi_record/testing.h"

namespace diapason::mpi_record {
namespace {

const std::string kTwoCalls =
    Block(BlockKind::kCalls, Bytes(Recorded(MpiCall::kAllreduce, 65536, 3'000'000'000, 5000, 1)) +
                                 Bytes(Recorded(MpiCall::kIbcast, 64, 3'000'010'000, 300, 2)));

std::string Whole() {
  FileHead head = Head();
  head.totals[static_cast<size_t>(MpiCall::kAllreduce)] = {1, 1'000'000'000};
  return Bytes(head) + Process(1, 4) + CommText(World(1, 4)) +
         Block(BlockKind::kSite, Bytes(uint64_t{0x1234}) + "solver+0x34") + kTwoCalls;
}

TEST(Recording, IsReadBack) {
  const Result<Recording> read = ParseRecording(Whole(), "rec");
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Recording& recording = read.value();
  EXPECT_EQ(recording.host, "node0");
  EXPECT_EQ(recording.program, "./solver");
  EXPECT_TRUE(recording.open_mpi());
  EXPECT_EQ(recording.rank, 1);
  EXPECT_EQ(recording.size, 4);
  ASSERT_EQ(recording.comms.size(), 1u);
  EXPECT_EQ(recording.comms[0].name, "MPI_COMM_WORLD");
  ASSERT_EQ(recording.calls.size(), 2u);
  EXPECT_EQ(recording.calls[0].bytes, 65536u);
  EXPECT_EQ(recording.sites.at(0x1234), "solver+0x34");
  EXPECT_TRUE(recording.complete());
  EXPECT_FALSE(recording.cut);
  EXPECT_DOUBLE_EQ(recording.ProgramSeconds(), 4);
  EXPECT_DOUBLE_EQ(recording.CollectiveSeconds(), 1);
}

TEST(Recording, OfAProcessThatWasKilledEndsWithItsLastWholeBlock) {
  const std::string whole = Whole();
  const size_t before_calls = whole.size() - kTwoCalls.size();
  for (size_t bytes = before_calls + 1; bytes < whole.size(); ++bytes) {
    const Result<Recording> read = ParseRecording(whole.substr(0, bytes), "rec");
    ASSERT_TRUE(read.ok());
    EXPECT_TRUE(read.value().cut);
    EXPECT_EQ(read.value().calls.size(), 0u);
    EXPECT_EQ(read.value().comms.size(), 1u);
  }
}

TEST(Recording, OfAProcessWithoutFinalizeLastsUntilItsFileWasWritten) {
  FileHead head = Head();
  head.finalize_ns = 0;
  head.init_ns = 0;
  EXPECT_DOUBLE_EQ(ParseRecording(Bytes(head), "rec").value().ProgramSeconds(), 6);
}

TEST(Recording, WhatIsNotOneIsRefused) {
  EXPECT_FALSE(ParseRecording("", "rec").ok());
  EXPECT_FALSE(ParseRecording("{\"type\":\"journal\"}", "rec").ok());
  EXPECT_FALSE(ParseRecording(Whole().substr(0, 100), "rec").ok());
  FileHead newer = Head();
  newer.version = 2;
  EXPECT_NE(ParseRecording(Bytes(newer), "rec").status().message().find("version 2"),
            std::string::npos);
  FileHead other = Head();
  other.byte_order = 0x04030201;
  EXPECT_FALSE(ParseRecording(Bytes(other), "rec").ok());
  FileHead small = Head();
  small.head_bytes = 8;
  EXPECT_FALSE(ParseRecording(Bytes(small), "rec").ok());
}

TEST(Recording, DamagedPartsAreCountedAndLeftOut) {
  CommBlock impossible = World(4, 4);
  impossible.number = 2;
  CallRecord unknown_call = Recorded(MpiCall::kBcast, 1, 1, 1, 1);
  unknown_call.call = kMpiCallCount;
  const std::string text =
      Bytes(Head()) + Process(0, 4) + CommText(World(0, 4)) + CommText(impossible) +
      CommText(World(0, 4)) +  // a second time, and it has not ended
      Block(BlockKind::kCalls, Bytes(Recorded(MpiCall::kBcast, 1, 1, 1, 1, 9)) +
                                   Bytes(unknown_call) +
                                   Bytes(Recorded(MpiCall::kBcast, 1, 1, UINT64_MAX, 1)) +
                                   Bytes(Recorded(MpiCall::kBcast, 1, 1, 1, 1))) +
      Block(BlockKind::kCalls, "short") + Block(static_cast<BlockKind>(99), "");
  const Result<Recording> read = ParseRecording(text, "rec");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().bad_blocks, 7u);
  EXPECT_EQ(read.value().calls.size(), 1u);
  EXPECT_FALSE(read.value().complete());
}

TEST(Recording, ABlockLargerThanTheFileIsACut) {
  const std::string text =
      Bytes(Head()) + Bytes(BlockHead{static_cast<uint32_t>(BlockKind::kCalls), UINT32_MAX});
  const Result<Recording> read = ParseRecording(text, "rec");
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read.value().cut);
}

TEST(Recording, BecomesAJournalOfTimedRuns) {
  CommBlock ended = World(1, 4);
  ended.ended_ns = 5;
  const journal::JournalContents contents =
      ToJournal(ParseRecording(Whole() + CommText(ended, ""), "rec").value());
  EXPECT_EQ(contents.host, "node0");
  EXPECT_TRUE(contents.ended);
  ASSERT_EQ(contents.communicators.size(), 1u);
  EXPECT_EQ(contents.communicators[0].shape, (Shape{1, 4}));
  EXPECT_EQ(contents.communicators[0].rank, 1);
  EXPECT_EQ(contents.communicators[0].ended_ns, 5u);
  EXPECT_EQ(contents.communicators[0].library, Library::kOpenMpi);
  ASSERT_EQ(contents.records.size(), 2u);
  EXPECT_EQ(contents.records[0].kind, journal::RecordKind::kRan);
  EXPECT_EQ(contents.records[0].collective, static_cast<uint8_t>(Collective::kAllReduce));
  EXPECT_DOUBLE_EQ(contents.records[0].seconds, 5e-6);
  EXPECT_EQ(CodeName(contents.records[1].collective), "ibcast");
  EXPECT_NE(contents.Find(1), nullptr);
}

}  // namespace
}  // namespace diapason::mpi_record
