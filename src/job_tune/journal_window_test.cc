#include "job_tune/journal_window.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "base/temporary_file.h"

namespace diapason::job_tune {
namespace {

std::string Head() {
  journal::JournalComm comm;
  comm.number = 1;
  comm.shape = {1, 4};
  return "{\"type\":\"journal\",\"version\":1,\"diapason\":\"1\",\"host\":\"h\",\"pid\":7,"
         "\"time_ns\":1}\n" +
         journal::CommunicatorLine(comm) + "\n";
}

std::string Line(uint32_t call, bool captured = false) {
  journal::JournalRecord record;
  record.captured = captured;
  record.communicator = 1;
  record.call = call;
  record.bytes = 1024;
  record.time_ns = call;
  return journal::RecordLine(record, Library::kNccl) + "\n";
}

class JournalWindowTest : public testing::Test {
 protected:
  void Append(const std::string& text) {
    std::FILE* file = std::fopen(path_.c_str(), "a");
    ASSERT_NE(file, nullptr);
    std::fputs(text.c_str(), file);
    std::fclose(file);
  }
  std::vector<uint32_t> Calls(const JournalWindow& window) {
    std::vector<uint32_t> calls;
    const Result<journal::JournalContents> contents = window.Contents();
    EXPECT_TRUE(contents.ok()) << contents.status().message();
    if (!contents.ok()) return calls;
    EXPECT_EQ(contents.value().bad_lines, 0u);
    for (const journal::JournalRecord& record : contents.value().records) {
      calls.push_back(record.call);
    }
    return calls;
  }
  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/journal";
};

TEST_F(JournalWindowTest, GivesWhatWasAddedSinceItWasOpened) {
  Append(Head() + Line(1) + Line(2));
  JournalWindow window(path_);
  ASSERT_TRUE(window.Read().ok());
  EXPECT_EQ(Calls(window), (std::vector<uint32_t>{1, 2}));
  window.Open();
  EXPECT_EQ(window.bytes(), 0u);
  Append(Line(3));
  ASSERT_TRUE(window.Read().ok());
  EXPECT_EQ(Calls(window), (std::vector<uint32_t>{3}));
}

// One is asked about a graph, which runs as long as the job.
TEST_F(JournalWindowTest, QuestionsAboutCapturedCallsStay) {
  JournalWindow window(path_);
  std::string lines = Head() + Line(1) + Line(2, true);
  for (uint32_t call = 3; lines.size() < (40u << 20); ++call) lines += Line(call);
  Append(lines);
  ASSERT_TRUE(window.Read().ok());
  EXPECT_LT(window.bytes(), 17u << 20);
  const std::vector<uint32_t> calls = Calls(window);
  ASSERT_GT(calls.size(), 2u);
  EXPECT_EQ(calls[0], 2u);
  EXPECT_GT(calls[1], 1000u);
  window.Open();
  EXPECT_EQ(window.bytes(), 0u);
}

TEST_F(JournalWindowTest, ALineThatIsBeingWrittenIsLeftForLater) {
  const std::string line = Line(1);
  Append(Head() + line.substr(0, 20));
  JournalWindow window(path_);
  ASSERT_TRUE(window.Read().ok());
  EXPECT_TRUE(Calls(window).empty());
  Append(line.substr(20));
  ASSERT_TRUE(window.Read().ok());
  EXPECT_EQ(Calls(window), (std::vector<uint32_t>{1}));
}

TEST_F(JournalWindowTest, AFileThatIsNotThereIsAnError) {
  JournalWindow window(path_);
  EXPECT_FALSE(window.Read().ok());
  EXPECT_FALSE(window.Contents().ok());
}

}  // namespace
}  // namespace diapason::job_tune
