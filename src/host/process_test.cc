#include "host/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "host/fake_process.h"

namespace diapason::host {
namespace {

double Ticks(uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

TEST(Process, NamesOfNcclAndRcclThreadsTellWhatTheyAreFor) {
  EXPECT_EQ(RoleOfThread("NCCL Progress 0"), ThreadRole::kProgress);
  EXPECT_EQ(RoleOfThread("NCCL GIN Progre"), ThreadRole::kProgress);
  EXPECT_EQ(RoleOfThread("NCCL RMA Proxy "), ThreadRole::kProgress);
  EXPECT_EQ(RoleOfThread("NCCL Service  3"), ThreadRole::kService);
  EXPECT_EQ(RoleOfThread("NCCL UDS Servic"), ThreadRole::kUds);
  EXPECT_EQ(RoleOfThread("NCCL IbAsync  2"), ThreadRole::kIbAsync);
  EXPECT_EQ(RoleOfThread("NCCL SockS0 1 0"), ThreadRole::kSocket);
  EXPECT_EQ(RoleOfThread("NCCL BootstrapR"), ThreadRole::kBootstrap);
  EXPECT_EQ(RoleOfThread("NCCL RAS"), ThreadRole::kRas);
  EXPECT_EQ(RoleOfThread("diapason-jrnl"), ThreadRole::kDiapason);
  EXPECT_EQ(RoleOfThread("pt_main_thread"), ThreadRole::kOther);
  EXPECT_EQ(RoleOfThread(""), ThreadRole::kOther);
  EXPECT_EQ(ThreadRoleName(ThreadRole::kProgress), "progress");
}

TEST(Process, ReadsWhatTheKernelTells) {
  const FakeRoot fake;
  // Blanks and brackets are part of the name.
  AddProcess(fake, 42, "a ) b (c", 7);
  FakeThread thread;
  thread.tid = 42;
  thread.name = "x) S 1 (";
  thread.user_ticks = 250;
  thread.system_ticks = 50;
  thread.voluntary = 11;
  thread.involuntary = 3;
  thread.wait_ns = 1500000000;
  AddThread(fake, 42, thread);
  thread.tid = 43;
  thread.name = "NCCL Progress 0";
  AddThread(fake, 42, thread);
  fake.Write("/proc/42/fd/0", "");
  fake.Write("/proc/42/fd/1", "");
  const Result<ProcessSample> read = SampleProcess(fake.tree(), 42);
  ASSERT_TRUE(read.ok()) << read.status().message();
  const ProcessSample& sample = read.value();
  EXPECT_EQ(sample.name, "a ) b (c");
  EXPECT_EQ(sample.parent, 7);
  EXPECT_EQ(sample.start_ticks, 500u);
  EXPECT_EQ(sample.resident, 2048u * 1024);
  EXPECT_EQ(sample.anonymous, 512u * 1024);
  EXPECT_EQ(sample.shared_memory, 128u * 1024);
  EXPECT_EQ(sample.locked, 4096u);
  EXPECT_EQ(sample.pinned, 8192u);
  EXPECT_EQ(sample.swapped, 16384u);
  EXPECT_EQ(sample.virtual_size, 1048576u);
  EXPECT_EQ(sample.major_faults, 7u);
  EXPECT_EQ(sample.open_files, 2);
  ASSERT_EQ(sample.threads.size(), 2u);
  const ThreadSample& first = sample.threads[0];
  EXPECT_EQ(first.name, "x) S 1 (");
  EXPECT_EQ(first.state, 'S');
  EXPECT_DOUBLE_EQ(first.user_s, Ticks(250));
  EXPECT_DOUBLE_EQ(first.system_s, Ticks(50));
  EXPECT_TRUE(first.has_wait);
  EXPECT_DOUBLE_EQ(first.wait_s, 1.5);
  EXPECT_EQ(first.voluntary, 11u);
  EXPECT_EQ(first.involuntary, 3u);
  EXPECT_EQ(first.last_cpu, 3);
  EXPECT_EQ(first.allowed_cpus, "0-3");
  EXPECT_TRUE(WaitsInFutex(first));
  EXPECT_EQ(sample.threads[1].role, ThreadRole::kProgress);
}

TEST(Process, ThreadsThatVanishAndKernelsThatTellLess) {
  const FakeRoot fake;
  AddProcess(fake, 42, "a");
  FakeThread thread;
  thread.tid = 42;
  AddThread(fake, 42, thread);
  // Its folder was listed before it ended.
  fake.Write("/proc/42/task/43/status", "Name: x\n");
  fake.Write("/proc/42/task/none/stat", "garbage");
  fake.Remove("/proc/42/task/42/schedstat");
  fake.Write("/proc/42/task/42/wchan", "0");
  fake.Write("/proc/42/task/42/syscall", "999 0x1 0x2 0x3\n");
  const Result<ProcessSample> read = SampleProcess(fake.tree(), 42);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().threads.size(), 1u);
  EXPECT_FALSE(read.value().threads[0].has_wait);
  EXPECT_EQ(read.value().threads[0].waits_in, "system call 999");
  fake.Write("/proc/42/task/42/syscall", "running\n");
  EXPECT_EQ(SampleProcess(fake.tree(), 42).value().threads[0].waits_in, "");
}

TEST(Process, HostileNumbersAreNone) {
  const FakeRoot fake;
  AddProcess(fake, 42, "a", 1, UINT64_MAX);  // kB that do not fit in bytes
  FakeThread thread;
  thread.tid = 42;
  thread.user_ticks = UINT64_MAX;
  AddThread(fake, 42, thread);
  const Result<ProcessSample> read = SampleProcess(fake.tree(), 42);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().resident, 0u);
  EXPECT_GT(read.value().threads[0].user_s, 1e12);
  fake.Write("/proc/42/stat", "42 (a S 1 1");
  EXPECT_EQ(SampleProcess(fake.tree(), 42).status().code(), ErrorCode::kUnavailable);
  fake.Write("/proc/42/stat", "42 (a) S");
  EXPECT_EQ(SampleProcess(fake.tree(), 42).status().code(), ErrorCode::kUnavailable);
}

TEST(Process, SaysWhyNot) {
  const FakeRoot fake;
  EXPECT_EQ(SampleProcess(fake.tree(), 42).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(EnvironmentOf(fake.tree(), 42).status().code(), ErrorCode::kNotFound);
  fake.Write("/proc/42/comm", "a");
  EXPECT_EQ(SampleProcess(fake.tree(), 42).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(EnvironmentOf(fake.tree(), 42).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(MappedLibraries(fake.tree(), 42).status().code(), ErrorCode::kUnavailable);
}

TEST(Process, EnvironmentAsGetenvSeesIt) {
  const FakeRoot fake;
  fake.Write("/proc/42/environ", std::string("A=1\0B=x=y\0A=2\0=no\0none\0C=\0", 26));
  const Result<MapEnvironment> read = EnvironmentOf(fake.tree(), 42);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().Get("A"), "1");
  EXPECT_EQ(read.value().Get("B"), "x=y");
  EXPECT_EQ(read.value().Get("C"), "");
  EXPECT_EQ(read.value().Names().size(), 3u);
}

TEST(Process, MappedLibrariesWithTheirMemory) {
  const FakeRoot fake;
  fake.Write("/proc/42/smaps",
             "7f00-7f10 r-xp 00000000 08:01 12     /opt/my libs/libnccl.so.2.28.9\n"
             "Rss:                 100 kB\nPss:   50 kB\n"
             "7f10-7f20 rw-p 00000000 08:01 12     /opt/my libs/libnccl.so.2.28.9\n"
             "Rss:                  20 kB\n"
             "7f20-7f30 r-xp 00000000 08:01 13     /lib/libc.so.6 (deleted)\n"
             "Rss:                   4 kB\n"
             "7f30-7f40 rw-p 00000000 00:00 0      [heap]\nRss: 9 kB\n"
             "7f40-7f50 rw-p 00000000 00:00 0\nRss: 9 kB\n"
             "7f50-7f60 r--p 00000000 08:01 14     /usr/share/x.dat\nRss: 9 kB\n");
  const auto read = MappedLibraries(fake.tree(), 42);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().size(), 2u);
  EXPECT_EQ(read.value()[0].path, "/opt/my libs/libnccl.so.2.28.9");
  EXPECT_EQ(read.value()[0].resident, 120u * 1024);
  EXPECT_FALSE(read.value()[0].deleted);
  EXPECT_EQ(read.value()[1].path, "/lib/libc.so.6");
  EXPECT_TRUE(read.value()[1].deleted);
  EXPECT_EQ(read.value()[1].resident, 4096u);
}

TEST(Process, DescendantsOnceAndParentsFirst) {
  const FakeRoot fake;
  AddProcess(fake, 10, "torchrun", 1);
  AddProcess(fake, 11, "rank", 10);
  AddProcess(fake, 12, "rank", 10);
  AddProcess(fake, 13, "loader", 12);
  AddProcess(fake, 20, "other", 1);
  EXPECT_EQ(WithDescendants(fake.tree(), {10}), (std::vector<pid_t>{10, 11, 12, 13}));
  EXPECT_EQ(WithDescendants(fake.tree(), {12, 10}), (std::vector<pid_t>{12, 10, 13, 11}));
  EXPECT_EQ(WithDescendants(fake.tree(), {10}, 2).size(), 2u);
  // A loop in a hostile tree ends.
  AddProcess(fake, 10, "torchrun", 13);
  EXPECT_EQ(WithDescendants(fake.tree(), {10}).size(), 4u);
}

TEST(Process, ThisOneIsThere) {
  const Result<ProcessSample> read = SampleProcess(RootFs("/"), getpid());
  ASSERT_TRUE(read.ok());
  EXPECT_GT(read.value().resident, 0u);
  EXPECT_EQ(read.value().parent, getppid());
  ASSERT_FALSE(read.value().threads.empty());
  EXPECT_EQ(read.value().threads[0].tid, getpid());
  ThreadSample peeked = read.value().threads[0];
  EXPECT_TRUE(PeekThread(RootFs("/"), getpid(), &peeked));
}

}  // namespace
}  // namespace diapason::host
