#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "journal/reader.h"
#include "journal/writer.h"

namespace diapason::journal {
namespace {

using std::chrono::milliseconds;

// Longer than any step takes; reached only on a failure.
constexpr milliseconds kLong{60000};

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

JournalComm NumberedCommunicator(uint32_t number, Library library = Library::kNccl) {
  JournalComm communicator;
  communicator.number = number;
  communicator.library = library;
  return communicator;
}

JournalRecord NumberedRecord(uint32_t communicator, uint32_t call) {
  JournalRecord record;
  record.communicator = communicator;
  record.call = call;
  record.bytes = uint64_t{call} << 20 | communicator;
  record.collective = static_cast<uint8_t>(Collective::kAllReduce);
  return record;
}

class JournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<Journal> Open(const std::string& name, size_t records = 16384,
                                uint64_t limit = uint64_t{1} << 30) {
    Journal::Options options;
    options.path = folder_ + "/" + name;
    options.records = records;
    options.limit = limit;
    Result<std::unique_ptr<Journal>> journal = Journal::Open(options);
    EXPECT_TRUE(journal.ok()) << journal.status().message();
    return journal.ok() ? std::move(journal).value() : nullptr;
  }
  // Why the path is refused.
  static std::string Refusal(const std::string& path) {
    Journal::Options options;
    options.path = path;
    const Result<std::unique_ptr<Journal>> journal = Journal::Open(options);
    return journal.ok() ? "opened" : journal.status().message();
  }
  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

// The mode that a journal gets under the loosest umask.
class JournalModeTest : public JournalTest {
 protected:
  void SetUp() override {
    JournalTest::SetUp();
    before_ = ::umask(0);
    path_ = folder_ + "/j";
  }
  void TearDown() override {
    ::umask(before_);
    JournalTest::TearDown();
  }
  mode_t ModeAfter(bool shared) {
    Journal::Options options;
    options.path = path_;
    options.shared = shared;
    const Result<std::unique_ptr<Journal>> journal = Journal::Open(options);
    EXPECT_TRUE(journal.ok()) << journal.status().message();
    struct stat info = {};
    EXPECT_EQ(::stat(path_.c_str(), &info), 0);
    return info.st_mode & 0777;
  }
  void Make(mode_t mode) {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT, 0600);
    ::fchmod(fd, mode);
    ::close(fd);
  }
  std::string path_;
  mode_t before_ = 0;
};

TEST_F(JournalModeTest, ANewFileIsPrivate) { EXPECT_EQ(ModeAfter(false), 0600u); }

TEST_F(JournalModeTest, ASharedFileHasWhatTheUmaskLeaves) {
  ::umask(027);
  EXPECT_EQ(ModeAfter(true), 0640u);
}

TEST_F(JournalModeTest, AFileThatOthersCouldReadIsClosedToThem) {
  for (const mode_t mode : {0644u, 0666u, 0640u, 0604u}) {
    Make(mode);
    EXPECT_EQ(ModeAfter(false), 0600u) << mode;
  }
}

TEST_F(JournalModeTest, APrivateOrSharedFileKeepsItsMode) {
  Make(0200);
  EXPECT_EQ(ModeAfter(false), 0200u);
  Make(0644);
  EXPECT_EQ(ModeAfter(true), 0644u);
}

TEST_F(JournalModeTest, FilesOfOthersAreRefusedAndStayAsTheyAre) {
  const std::string other = folder_ + "/other";
  std::ofstream(other) << "mine";
  ASSERT_EQ(::symlink(other.c_str(), path_.c_str()), 0);
  EXPECT_NE(Refusal(path_).find("it is a symbolic link"), std::string::npos);
  ::unlink(path_.c_str());
  ASSERT_EQ(::link(other.c_str(), path_.c_str()), 0);
  EXPECT_NE(Refusal(path_).find("it has a second name elsewhere"), std::string::npos);
  ::unlink(path_.c_str());
  EXPECT_EQ(std::filesystem::file_size(other), 4u);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
  Make(0666);
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_NE(Refusal(path_).find("it belongs to another user"), std::string::npos);
}

TEST_F(JournalTest, WhatIsAddedIsReadBackInOrder) {
  const std::unique_ptr<Journal> journal = Open("j");
  journal->AddCommunicator(NumberedCommunicator(1));
  journal->AddCommunicator(NumberedCommunicator(2, Library::kOpenMpi));
  for (uint32_t call = 1; call <= 1000; ++call) {
    JournalRecord record = NumberedRecord(call % 2 + 1, call);
    record.algorithm = 5;  // has a different name in each library
    journal->Add(record);
  }
  journal->Stop();

  EXPECT_EQ(journal->path(), folder_ + "/j");
  EXPECT_EQ(journal->failure(), "");
  const JournalContents contents = ReadJournal(journal->path()).value();
  EXPECT_EQ(contents.bad_lines, 0u) << contents.first_bad_why;
  EXPECT_EQ(contents.version, kFormatVersion);
  EXPECT_EQ(contents.pid, ::getpid());
  EXPECT_FALSE(contents.host.empty());
  EXPECT_TRUE(contents.ended);
  EXPECT_EQ(contents.dropped, 0u);
  ASSERT_EQ(contents.communicators.size(), 2u);
  EXPECT_EQ(contents.Find(2)->library, Library::kOpenMpi);
  ASSERT_EQ(contents.records.size(), 1000u);
  for (uint32_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(contents.records[i].call, i + 1);
    EXPECT_EQ(contents.records[i].bytes, NumberedRecord((i + 1) % 2 + 1, i + 1).bytes);
    EXPECT_EQ(contents.records[i].algorithm, 5);
  }
}

TEST_F(JournalTest, FlushPutsEverythingAddedBeforeIntoTheFile) {
  const std::unique_ptr<Journal> journal = Open("j");
  EXPECT_TRUE(journal->Flush(kLong)) << "with nothing to write";
  journal->AddCommunicator(NumberedCommunicator(1));
  for (uint32_t call = 1; call <= 50; ++call) {
    journal->Add(NumberedRecord(1, call));
    ASSERT_TRUE(journal->Flush(kLong));
    const JournalContents contents = ReadJournal(journal->path()).value();
    ASSERT_EQ(contents.records.size(), call);
    ASSERT_FALSE(contents.ended);
  }
}

TEST_F(JournalTest, FlushWaitsForACommunicatorThatIsJustBeingWritten) {
  const std::unique_ptr<Journal> journal = Open("j");
  ASSERT_TRUE(journal->Flush(kLong));
  // Large, so that the thread is busy.
  JournalComm communicator = NumberedCommunicator(1);
  communicator.policy = std::string(8 << 20, 'x');
  const uint64_t line = CommunicatorLine(communicator).size() + 1;
  uint64_t expected = std::filesystem::file_size(journal->path());
  for (int round = 1; round <= 8; ++round) {
    journal->AddCommunicator(communicator);
    std::this_thread::sleep_for(std::chrono::microseconds(round * 200));
    ASSERT_TRUE(journal->Flush(kLong));
    expected += line;
    ASSERT_EQ(std::filesystem::file_size(journal->path()), expected) << "round " << round;
  }
}

TEST_F(JournalTest, ManyThreadsLoseNothingWhenThereIsRoom) {
  constexpr uint32_t kThreads = 8;
  constexpr uint32_t kEach = 500;
  const std::unique_ptr<Journal> journal = Open("j", kThreads * kEach);
  for (uint32_t number = 1; number <= kThreads; ++number) {
    journal->AddCommunicator(NumberedCommunicator(number));
  }
  std::vector<std::thread> threads;
  for (uint32_t number = 1; number <= kThreads; ++number) {
    threads.emplace_back([&journal, number] {
      for (uint32_t call = 1; call <= kEach; ++call) journal->Add(NumberedRecord(number, call));
    });
  }
  for (std::thread& thread : threads) thread.join();
  journal->Stop();
  const JournalContents contents = ReadJournal(journal->path()).value();
  EXPECT_EQ(contents.bad_lines, 0u) << contents.first_bad_why;
  EXPECT_EQ(contents.records.size(), kThreads * kEach);
  std::vector<uint32_t> calls(kThreads + 1);
  for (const JournalRecord& record : contents.records) {
    EXPECT_EQ(record.call, ++calls[record.communicator]) << "each once, in its thread's order";
    EXPECT_EQ(record.bytes, NumberedRecord(record.communicator, record.call).bytes);
  }
}

TEST_F(JournalTest, ACommunicatorsLineComesBeforeItsFirstRecord) {
  const std::unique_ptr<Journal> journal = Open("j", 1 << 16);
  constexpr uint32_t kCommunicators = 3000;
  std::atomic<bool> done{false};
  // Keeps the journal's thread busy.
  std::thread flusher([&] {
    while (!done.load()) (void)journal->Flush(kLong);
  });
  for (uint32_t number = 1; number <= kCommunicators; ++number) {
    journal->AddCommunicator(NumberedCommunicator(number));
    journal->Add(NumberedRecord(number, 1));
  }
  done.store(true);
  flusher.join();
  journal->Stop();
  const JournalContents contents = ReadJournal(journal->path()).value();
  EXPECT_EQ(contents.bad_lines, 0u)
      << "line " << contents.first_bad_line << ": " << contents.first_bad_why;
  EXPECT_EQ(contents.records.size(), kCommunicators);
}

TEST_F(JournalTest, LossesOfASmallRingAreCountedInTheFile) {
  const std::unique_ptr<Journal> journal = Open("j", 64);
  journal->AddCommunicator(NumberedCommunicator(1));
  constexpr uint32_t kRecords = 20000;
  for (uint32_t call = 1; call <= kRecords; ++call) journal->Add(NumberedRecord(1, call));
  journal->Stop();
  const JournalContents contents = ReadJournal(journal->path()).value();
  EXPECT_EQ(contents.bad_lines, 0u) << contents.first_bad_why;
  EXPECT_GT(contents.dropped, 0u);
  EXPECT_EQ(contents.dropped, journal->dropped());
  EXPECT_EQ(contents.records.size() + contents.dropped, kRecords);
  EXPECT_TRUE(contents.ended);
}

TEST_F(JournalTest, TheNameHoldsHostAndProcess) {
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  const std::string pid = std::to_string(::getpid());
  for (const auto& [pattern, name] : std::vector<std::pair<std::string, std::string>>{
           {"a.%h.%p.j", Format("a.{}.{}.j", host, pid)},
           {"%p%p", pid + pid},
           {"b%%p", "b%p"},
           {"c%x%", "c%x%"}}) {
    const std::unique_ptr<Journal> journal = Open(pattern);
    EXPECT_EQ(journal->path(), folder_ + "/" + name);
    EXPECT_TRUE(FileExists(folder_ + "/" + name)) << name;
  }
}

TEST_F(JournalTest, AFileInUseIsLeftAloneAndTheProcessIdIsAdded) {
  const std::unique_ptr<Journal> first = Open("j");
  first->AddCommunicator(NumberedCommunicator(1));
  first->Add(NumberedRecord(1, 1));
  ASSERT_TRUE(first->Flush(kLong));
  const std::unique_ptr<Journal> second = Open("j");
  EXPECT_EQ(second->path(), Format("{}/j.{}", folder_, static_cast<int>(::getpid())));
  first->Stop();
  second->Stop();
  EXPECT_EQ(ReadJournal(first->path()).value().records.size(), 1u);
  EXPECT_EQ(ReadJournal(second->path()).value().records.size(), 0u);
}

TEST_F(JournalTest, AFileWithoutAWriterIsReplaced) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/j", std::string(100000, 'x')).ok());
  const std::unique_ptr<Journal> journal = Open("j");
  journal->Stop();
  EXPECT_EQ(journal->path(), folder_ + "/j");
  EXPECT_EQ(ReadJournal(journal->path()).value().bad_lines, 0u);
}

TEST_F(JournalTest, AtItsLimitTheFileStopsGrowingAtTheEndOfALine) {
  constexpr uint64_t kLimit = 10000;
  const std::unique_ptr<Journal> journal = Open("j", 16384, kLimit);
  journal->AddCommunicator(NumberedCommunicator(1));
  for (uint32_t call = 1; call <= 500; ++call) journal->Add(NumberedRecord(1, call));
  journal->Stop();
  EXPECT_TRUE(Holds(journal->failure(), "limit of 10000 bytes")) << journal->failure();
  const std::string text = ReadFile(journal->path(), kLimit).value();
  EXPECT_GT(text.size(), kLimit / 2);
  EXPECT_EQ(text.back(), '\n');
  const JournalContents contents = ParseJournal(text, "j").value();
  EXPECT_EQ(contents.bad_lines, 0u) << contents.first_bad_why;
  EXPECT_FALSE(contents.ended);
  EXPECT_LT(contents.records.size(), 500u);
}

TEST_F(JournalTest, FlushDoesNotClaimWhatTheLimitKeptOut) {
  const std::unique_ptr<Journal> journal = Open("j", 16384, 10000);
  for (uint32_t call = 1; call <= 500; ++call) journal->Add(NumberedRecord(1, call));
  EXPECT_FALSE(journal->Flush(kLong));
}

TEST_F(JournalTest, WhatIsNoPlaceForAFileIsRefusedWithAReason) {
  const std::string missing = folder_ + "/no/such/folder/j";
  EXPECT_EQ(Refusal(missing),
            "cannot write the journal '" + missing + "': No such file or directory");
  EXPECT_TRUE(Holds(Refusal(folder_), "Is a directory"));
  EXPECT_TRUE(Holds(Refusal(""), "No such file or directory"));
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/file", "old").ok());
  EXPECT_TRUE(Holds(Refusal(folder_ + "/file/j"), "Not a directory"));

  std::filesystem::create_symlink(folder_ + "/file", folder_ + "/link");
  EXPECT_TRUE(Holds(Refusal(folder_ + "/link"), "symbolic link"));
  EXPECT_EQ(ReadFile(folder_ + "/file", 100).value(), "old") << "what it points to is untouched";
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(Holds(Refusal(folder_ + "/pipe"), "cannot write the journal"));
  if (FileExists("/dev/full")) {
    EXPECT_TRUE(Holds(Refusal("/dev/full"), "not a regular file"));
  }
}

TEST_F(JournalTest, AFolderWithoutPermissionIsRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  ASSERT_EQ(::chmod(folder_.c_str(), 0500), 0);
  EXPECT_TRUE(Holds(Refusal(folder_ + "/j"), "Permission denied"));
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
}

TEST_F(JournalTest, FlushAndStopMayBeCalledAgain) {
  const std::unique_ptr<Journal> journal = Open("j");
  journal->AddCommunicator(NumberedCommunicator(1));
  journal->Add(NumberedRecord(1, 1));
  EXPECT_TRUE(journal->Flush(kLong));
  EXPECT_TRUE(journal->Flush(kLong));
  EXPECT_TRUE(journal->Flush(milliseconds(0))) << "there is nothing to wait for";
  journal->Stop();
  const std::string text = ReadFile(journal->path(), 1 << 20).value();
  journal->Stop();
  (void)journal->Flush(kLong);
  journal->Add(NumberedRecord(1, 2));
  journal->AddCommunicator(NumberedCommunicator(2));
  journal->Stop();
  EXPECT_EQ(ReadFile(journal->path(), 1 << 20).value(), text) << "nothing follows the end";
}

TEST_F(JournalTest, TheEndOfTheObjectEndsTheFileAndFreesItsName) {
  Open("j")->Add(NumberedRecord(1, 1));
  EXPECT_TRUE(ReadJournal(folder_ + "/j").value().ended);
  EXPECT_EQ(Open("j")->path(), folder_ + "/j");
}

TEST_F(JournalTest, AForkedChildLeavesTheJournalToItsParent) {
  std::unique_ptr<Journal> journal = Open("j");
  journal->AddCommunicator(NumberedCommunicator(1));
  journal->Add(NumberedRecord(1, 1));
  ASSERT_TRUE(journal->Flush(kLong));
  EXPECT_TRUE(journal->Mine());

  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // The child has no thread that flushes: these would wait for ever, and the alarm would end
    // them.
    ::alarm(30);
    bool fine = !journal->Mine();
    journal->Add(NumberedRecord(1, 99));
    fine = !journal->Flush(kLong) && fine;
    journal->Stop();
    journal.reset();
    ::_exit(fine ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;

  journal->Add(NumberedRecord(1, 2));
  EXPECT_TRUE(journal->Flush(kLong)) << "the parent goes on";
  journal->Stop();
  const JournalContents contents = ReadJournal(journal->path()).value();
  EXPECT_EQ(contents.bad_lines, 0u);
  ASSERT_EQ(contents.records.size(), 2u);
  EXPECT_EQ(contents.records[1].call, 2u);
}

}  // namespace
}  // namespace diapason::journal
