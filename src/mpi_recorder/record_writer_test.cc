#include "mpi_recorder/record_writer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <thread>

#include "mpi_record/reader.h"

namespace diapason::mpi_recorder {
namespace {

using mpi_record::CallRecord;
using mpi_record::CommBlock;
using mpi_record::Recording;

constexpr auto kLong = std::chrono::milliseconds(120000);  // only a hang reaches it

class RecordWriterTest : public testing::Test {
 protected:
  RecordWriterTest() {
    options_.path = testing::TempDir() + "diapason-record-" + std::to_string(getpid());
    options_.process = "host=h\nlibrary=Open MPI v1\nprogram=p\nrank=0\nsize=1\n";
    options_.loaded_ns = 1;
  }
  ~RecordWriterTest() override { std::filesystem::remove(options_.path); }

  std::unique_ptr<RecordWriter> Open() {
    Result<std::unique_ptr<RecordWriter>> opened = RecordWriter::Open(options_);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return std::move(opened).value();
  }
  static void AddComm(RecordWriter* writer, uint32_t number) {
    CommBlock comm;
    comm.number = number;
    comm.ranks = 2;
    comm.rank = 1;
    writer->AddCommunicator(comm, "world");
  }
  static CallRecord Call(uint32_t sequence) {
    CallRecord record;
    record.call = static_cast<uint8_t>(MpiCall::kAllreduce);
    record.communicator = 1;
    record.sequence = sequence;
    record.bytes = 64;
    record.start_ns = TickClock::Get().Now();
    record.duration_ns = TickClock::Get().Ticks(1e-3);
    return record;
  }
  Recording Read() const {
    Result<Recording> read = mpi_record::ReadRecording(options_.path);
    EXPECT_TRUE(read.ok()) << read.status().message();
    return std::move(read).value();
  }

  RecordWriter::Options options_;
};

TEST_F(RecordWriterTest, WhatWasAddedIsInTheFileAfterAFlush) {
  const std::unique_ptr<RecordWriter> writer = Open();
  AddComm(writer.get(), 1);
  CallRecord call = Call(1);
  call.site = reinterpret_cast<uint64_t>(&AddComm);
  writer->Add(call);
  writer->MarkInit();
  ASSERT_TRUE(writer->Flush(kLong));
  Recording read = Read();
  ASSERT_EQ(read.calls.size(), 1u);
  EXPECT_EQ(read.comms[0].name, "world");
  EXPECT_NEAR(static_cast<double>(read.calls[0].duration_ns), 1e6, 1e4);
  EXPECT_GT(read.head.written_ns, read.head.init_ns);
  EXPECT_EQ(read.head.ended, 0u);
  EXPECT_NE(read.sites.at(call.site).find("mpi_recorder_test+0x"), std::string::npos);
  writer->MarkFinalize();
  writer->Stop();
  read = Read();
  EXPECT_EQ(read.head.ended, 1u);
  EXPECT_GT(read.head.finalize_ns, 0u);
  EXPECT_TRUE(read.complete());
}

TEST_F(RecordWriterTest, ThreadsFillItTogether) {
  options_.records = 1 << 16;
  const std::unique_ptr<RecordWriter> writer = Open();
  AddComm(writer.get(), 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint32_t call = 1; call <= 5000; ++call) writer->Add(Call(call));
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer->Stop();
  const Recording read = Read();
  EXPECT_EQ(read.calls.size(), 20000u);
  EXPECT_EQ(read.head.totals[static_cast<size_t>(MpiCall::kAllreduce)].calls, 20000u);
}

TEST_F(RecordWriterTest, WhatHasNoRoomIsCounted) {
  options_.limit = 8192;
  const std::unique_ptr<RecordWriter> writer = Open();
  AddComm(writer.get(), 1);
  for (uint32_t call = 1; call <= 1000; ++call) {
    writer->Add(Call(call));
    if (call % 50 == 0) {
      ASSERT_TRUE(writer->Flush(kLong));
    }
  }
  writer->Stop();
  EXPECT_EQ(writer->failure(), "");
  EXPECT_LE(std::filesystem::file_size(options_.path), 8192u);
  const Recording read = Read();
  EXPECT_GT(read.calls.size(), 50u);
  EXPECT_EQ(read.calls.size() + read.head.over_limit, 1000u);
  EXPECT_EQ(read.head.totals[static_cast<size_t>(MpiCall::kAllreduce)].calls, 1000u);
}

TEST_F(RecordWriterTest, AForkedChildWritesNothing) {
  const std::unique_ptr<RecordWriter> writer = Open();
  AddComm(writer.get(), 1);
  writer->Add(Call(1));
  const pid_t child = fork();
  if (child == 0) {
    AddComm(writer.get(), 2);
    writer->Add(Call(2));
    const bool quiet = !writer->Flush(kLong) && writer->failure().empty();
    writer->Stop();
    _exit(quiet ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  writer->Stop();
  EXPECT_EQ(Read().calls.size(), 1u);
}

TEST_F(RecordWriterTest, CallsOfUnknownCommunicatorsAreOnlyCounted) {
  const std::unique_ptr<RecordWriter> writer = Open();
  CallRecord call = Call(1);
  call.communicator = 0;
  writer->Add(call);
  writer->Stop();
  const Recording read = Read();
  EXPECT_EQ(read.calls.size(), 0u);
  EXPECT_EQ(read.bad_blocks, 0u);
  EXPECT_EQ(read.head.totals[static_cast<size_t>(MpiCall::kAllreduce)].calls, 1u);
}

TEST_F(RecordWriterTest, AFolderThatIsNotThereIsSaid) {
  options_.path = "/no/such/folder/rec";
  const Result<std::unique_ptr<RecordWriter>> opened = RecordWriter::Open(options_);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("cannot write the recording '/no/such/folder/rec'"),
            std::string::npos);
}

}  // namespace
}  // namespace diapason::mpi_recorder
