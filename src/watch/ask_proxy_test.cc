#include "watch/ask_proxy.h"

#include <gtest/gtest.h>

#include "host/fake_process.h"

namespace diapason::watch {
namespace {

bool Says(const Result<DumpTarget>& found, const std::string& part) {
  return !found.ok() && found.status().message().find(part) != std::string::npos;
}

// Process 42 with a handler for signal 10.
class AskProxyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    host::AddProcess(fake_, 42, "rank");
    host::FakeThread thread;
    thread.tid = 42;
    host::AddThread(fake_, 42, thread);
    Environment("NCCL_PROXY_DUMP_SIGNAL=10");
  }
  void Environment(const std::string& text) const {
    std::string variables = text + " ";
    for (char& c : variables) c = c == ' ' ? '\0' : c;
    fake_.Write("/proc/42/environ", variables);
  }
  Result<DumpTarget> Find() const { return FindDumpTarget(fake_.tree(), 42); }
  host::FakeRoot fake_;
};

TEST_F(AskProxyTest, NeverWithoutTheVariableAndTheHandler) {
  ASSERT_TRUE(Find().ok());
  EXPECT_EQ(Find().value().signal, 10);
  Environment("NCCL_DEBUG=INFO");
  EXPECT_TRUE(Says(Find(), "was not started with NCCL_PROXY_DUMP_SIGNAL"));
  Environment("NCCL_PROXY_DUMP_SIGNAL=12");
  EXPECT_TRUE(Says(Find(), "no handler for signal 12"));
  for (const char* value : {"SIGUSR1", "", "10x", "0", "-1", "65", "99999999999999999999"}) {
    Environment(std::string("NCCL_PROXY_DUMP_SIGNAL=") + value);
    EXPECT_TRUE(Says(Find(), "no number of a signal")) << value;
  }
  Environment("NCCL_PROXY_DUMP_SIGNAL=0xa");  // NCCL reads any base
  EXPECT_TRUE(Find().ok());
  fake_.Remove("/proc/42/environ");
  EXPECT_FALSE(Find().ok());
}

TEST_F(AskProxyTest, TheProgressThreadThatStartedLastIsAsked) {
  EXPECT_EQ(Find().value().thread, 0);
  host::FakeThread progress;
  progress.tid = 50;
  progress.name = "NCCL Progress 0";
  progress.start = 900;
  host::AddThread(fake_, 42, progress);
  progress.tid = 60;
  progress.start = 800;
  host::AddThread(fake_, 42, progress);
  progress.tid = 70;
  progress.name = "NCCL GIN Progre";
  progress.start = 999;
  host::AddThread(fake_, 42, progress);
  EXPECT_EQ(Find().value().thread, 50);
}

TEST_F(AskProxyTest, AHandlerOfAnotherLibraryIsNotCalled) {
  Environment("NCCL_PROXY_DUMP_SIGNAL=10 NCCL_SET_THREAD_NAME=1");
  EXPECT_TRUE(Says(Find(), "has no progress thread"));
}

TEST_F(AskProxyTest, WhereTheAnswerGoes) {
  const auto kind = [&] { return OutputOf(fake_.tree(), 42).kind; };
  EXPECT_EQ(kind(), OutputPlace::Kind::kNowhere);
  fake_.Link("/proc/42/fd/1", "/dev/null");
  EXPECT_EQ(kind(), OutputPlace::Kind::kNowhere);
  fake_.Link("/proc/42/fd/1", "/dev/pts/3");
  EXPECT_EQ(kind(), OutputPlace::Kind::kTerminal);
  fake_.Link("/proc/42/fd/1", "/home/u/job.log");
  EXPECT_EQ(kind(), OutputPlace::Kind::kFile);
  fake_.Link("/proc/42/fd/1", "socket:[5]");
  EXPECT_EQ(kind(), OutputPlace::Kind::kOther);
}

TEST_F(AskProxyTest, WhoReadsThePipe) {
  fake_.Link("/proc/42/fd/1", "pipe:[77]");
  // The shell that started both still has the writing end.
  host::AddProcess(fake_, 43, "bash");
  fake_.Link("/proc/43/fd/1", "pipe:[77]");
  fake_.Write("/proc/43/fdinfo/1", "pos:\t0\nflags:\t0100001\n");
  host::AddProcess(fake_, 44, "tee");
  fake_.Write("/proc/44/comm", "tee\n");
  fake_.Link("/proc/44/fd/0", "pipe:[77]");
  fake_.Write("/proc/44/fdinfo/0", "pos:\t0\nflags:\t00\n");
  fake_.Link("/proc/44/fd/3", "/home/u/job.log");
  fake_.Write("/proc/44/fdinfo/3", "pos:\t0\nflags:\t0100001\n");
  fake_.Link("/proc/44/fd/4", "/etc/locale");
  fake_.Write("/proc/44/fdinfo/4", "pos:\t0\nflags:\t0100000\n");
  const OutputPlace place = OutputOf(fake_.tree(), 42);
  EXPECT_EQ(place.kind, OutputPlace::Kind::kPipe);
  ASSERT_EQ(place.readers.size(), 1u);
  EXPECT_EQ(place.readers[0].pid, 44);
  EXPECT_EQ(place.readers[0].name, "tee");
  EXPECT_EQ(place.readers[0].files, std::vector<std::string>{"/home/u/job.log"});
}

TEST_F(AskProxyTest, NothingIsSentToAnotherProcessWithItsNumber) {
  const DumpTarget target = Find().value();
  host::AddProcess(fake_, 42, "rank", 1, 10, 900);
  const auto answer = AskForDump(fake_.tree(), target, "", {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace diapason::watch
