#include "watch/watcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "host/fake_process.h"

namespace diapason::watch {
namespace {

uint64_t TicksPerSecond() { return static_cast<uint64_t>(sysconf(_SC_CLK_TCK)); }

host::ThreadSample Thread(pid_t tid, const std::string& name, double user_s) {
  host::ThreadSample thread;
  thread.tid = tid;
  thread.name = name;
  thread.role = host::RoleOfThread(name);
  thread.user_s = user_s;
  return thread;
}

host::ProcessSample At(double time_s, std::vector<host::ThreadSample> threads) {
  host::ProcessSample sample;
  sample.pid = 1;
  sample.time_s = time_s;
  sample.threads = std::move(threads);
  return sample;
}

TEST(Rates, OfNamedThreadsEachAndOthersByName) {
  host::ThreadSample progress = Thread(2, "NCCL Progress 0", 5);
  progress.has_wait = true;
  const host::ProcessSample before =
      At(10, {Thread(1, "python", 1), progress, Thread(3, "w", 1), Thread(4, "w", 1)});
  progress.user_s = 6.5;
  progress.system_s = 0.5;
  progress.wait_s = 0.2;
  progress.voluntary = 100;
  progress.involuntary = 10;
  const host::ProcessSample now =
      At(12, {Thread(1, "python", 1), progress, Thread(3, "w", 2), Thread(4, "w", 1.5)});
  FutexByThread futex;
  futex[2] = {10, 8, 4};
  const ProcessRate rate = RatesOf(before, now, futex);
  EXPECT_DOUBLE_EQ(rate.seconds, 2);
  ASSERT_EQ(rate.named.size(), 1u);
  EXPECT_DOUBLE_EQ(rate.named[0].user, 0.75);
  EXPECT_DOUBLE_EQ(rate.named[0].cpu(), 1.0);
  EXPECT_DOUBLE_EQ(rate.named[0].wait, 0.1);
  EXPECT_DOUBLE_EQ(rate.named[0].voluntary_per_s, 50);
  EXPECT_DOUBLE_EQ(rate.named[0].involuntary_per_s, 5);
  EXPECT_EQ(rate.named[0].futex.futex, 4u);
  EXPECT_DOUBLE_EQ(rate.progress_cpu, 1.0);
  ASSERT_EQ(rate.others.size(), 2u);
  EXPECT_EQ(rate.others[0].name, "w");
  EXPECT_EQ(rate.others[0].threads, 2u);
  EXPECT_DOUBLE_EQ(rate.others[0].cpu(), 0.75);
  EXPECT_DOUBLE_EQ(rate.total.cpu(), 1.75);
  ASSERT_EQ(rate.busy.size(), 1u);
  EXPECT_EQ(rate.busy[0].tid, 3);
}

TEST(Rates, ThreadsThatComeGoOrHaveAnOldNumber) {
  host::ThreadSample old = Thread(2, "w", 100);
  old.start_ticks = 1;
  host::ThreadSample young = Thread(2, "w", 0.5);
  young.start_ticks = 2;
  const ProcessRate rate =
      RatesOf(At(1, {old, Thread(3, "w", 7)}), At(2, {young, Thread(4, "x", 0.25)}), {});
  EXPECT_DOUBLE_EQ(rate.total.cpu(), 0.75);
  // A clock that stands still, counters that go back.
  const ProcessRate still = RatesOf(At(1, {Thread(1, "a", 5)}), At(1, {Thread(1, "a", 4)}), {});
  EXPECT_DOUBLE_EQ(still.total.cpu(), 0);
}

TEST(Counters, OfInterfacesAndRdmaPorts) {
  const host::FakeRoot fake;
  fake.Write("/proc/5/net/dev",
             "Inter-|   Receive    |  Transmit\n face |bytes packets errs drop fifo frame "
             "compressed multicast|bytes packets errs drop fifo colls carrier compressed\n"
             "    lo: 100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0\n"
             "eth0:1: 18446744073709551615 1 1 2 0 0 0 0 300 1 3 4 0 0 0 0\nbroken: 1 2\n");
  const auto interfaces = InterfacesOf(fake.tree(), 5);
  ASSERT_EQ(interfaces.size(), 2u);
  EXPECT_EQ(interfaces[1].name, "eth0:1");
  EXPECT_EQ(interfaces[1].received_bytes, UINT64_MAX);
  EXPECT_EQ(interfaces[1].sent_bytes, 300u);
  EXPECT_EQ(interfaces[1].errors, 10u);
  const std::string port = "/sys/class/infiniband/mlx5_0/ports/1";
  fake.Write(port + "/counters/port_xmit_data", "250\n");
  fake.Write(port + "/counters/port_rcv_data", "500\n");
  fake.Write(port + "/counters/symbol_error", "2\n");
  fake.Write(port + "/hw_counters/out_of_buffer", "7\n");
  const auto before = RdmaPorts(fake.tree());
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0].name, "mlx5_0:1");
  EXPECT_EQ(before[0].sent_bytes, 1000u);
  EXPECT_EQ(before[0].received_bytes, 2000u);
  fake.Write(port + "/counters/port_xmit_data", "1250\n");
  fake.Write(port + "/counters/port_rcv_data", "100\n");  // it was reset
  fake.Write(port + "/hw_counters/out_of_buffer", "11\n");
  const auto rates = NetRates(before, RdmaPorts(fake.tree()), 2);
  ASSERT_EQ(rates.size(), 1u);
  EXPECT_DOUBLE_EQ(rates[0].sent_per_s, 2000);
  EXPECT_DOUBLE_EQ(rates[0].received_per_s, 0);
  EXPECT_DOUBLE_EQ(rates[0].trouble_per_s.at("out_of_buffer"), 2);
}

TEST(Watcher, FirstLookThenRatesThenTheEnd) {
  const host::FakeRoot fake;
  host::AddProcess(fake, 42, "rank", 1, 1000);
  host::FakeThread thread;
  thread.tid = 42;
  host::AddThread(fake, 42, thread);
  fake.Write("/proc/42/environ", std::string("RANK=3\0", 7));
  fake.Write("/proc/42/maps", "7f00-7f10 r-xp 0 08:01 12 /x/libnccl.so.2\n");
  Watcher::Options options;
  options.pids = {42};
  Watcher watcher(fake.tree(), options);
  Result<WatchView> view = watcher.Look();
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(view.value().processes.size(), 1u);
  EXPECT_TRUE(view.value().processes[0].first);
  EXPECT_EQ(view.value().processes[0].rank, 3);
  EXPECT_TRUE(view.value().processes[0].names_off);
  EXPECT_EQ(view.value().alive, 1u);
  watcher.Peek();
  host::AddProcess(fake, 42, "rank", 1, 3000);
  thread.user_ticks = 1000 * TicksPerSecond();
  host::AddThread(fake, 42, thread);
  view = watcher.Look();
  const ProcessView& second = view.value().processes[0];
  EXPECT_FALSE(second.first);
  EXPECT_GT(second.rate.total.cpu(), 0);
  EXPECT_GT(second.growth, 0);
  EXPECT_EQ(second.growth_looks, 2u);
  EXPECT_LT(second.growth_looks, kLeastGrowthLooks);
  // Both looks and the one in between.
  EXPECT_EQ(second.rate.total.futex.looks, 2u);
  EXPECT_EQ(second.rate.total.futex.futex, 2u);
  // Another process gets the number.
  host::AddProcess(fake, 42, "other", 1, 10, 900);
  view = watcher.Look();
  EXPECT_TRUE(view.value().processes[0].ended);
  EXPECT_EQ(view.value().alive, 0u);
  EXPECT_EQ(view.value().processes[0].now.name, "rank");
}

TEST(Watcher, ChildrenComeAndGo) {
  const host::FakeRoot fake;
  for (const int pid : {10, 11, 12}) {
    host::AddProcess(fake, pid, "p", pid == 10 ? 1 : 10);
    host::FakeThread thread;
    thread.tid = pid;
    host::AddThread(fake, pid, thread);
  }
  Watcher::Options options;
  options.pids = {10};
  options.children = true;
  Watcher watcher(fake.tree(), options);
  EXPECT_EQ(watcher.Look().value().alive, 3u);
  fake.Remove("/proc/11");
  host::AddProcess(fake, 13, "p", 12);
  WatchView view = watcher.Look().value();
  EXPECT_EQ(view.alive, 3u);
  EXPECT_EQ(view.processes.size(), 4u);
  // Reported once.
  EXPECT_EQ(watcher.Look().value().processes.size(), 3u);
}

TEST(Watcher, NoSuchProcess) {
  const host::FakeRoot fake;
  Watcher::Options options;
  options.pids = {42};
  EXPECT_EQ(Watcher(fake.tree(), options).Look().status().code(), ErrorCode::kNotFound);
  options.pids = {42, 43};
  EXPECT_EQ(Watcher(fake.tree(), options).Look().status().code(), ErrorCode::kNotFound);
  // Nor beside one that is there.
  host::AddProcess(fake, 42, "p", 1);
  host::FakeThread thread;
  thread.tid = 42;
  host::AddThread(fake, 42, thread);
  const Result<WatchView> view = Watcher(fake.tree(), options).Look();
  ASSERT_FALSE(view.ok());
  EXPECT_NE(view.status().message().find("43"), std::string::npos) << view.status().message();
  // One that ends later is no error.
  host::AddProcess(fake, 43, "p", 1);
  thread.tid = 43;
  host::AddThread(fake, 43, thread);
  Watcher watcher(fake.tree(), options);
  ASSERT_TRUE(watcher.Look().ok());
  fake.Remove("/proc/43");
  ASSERT_TRUE(watcher.Look().ok());
}

}  // namespace
}  // namespace diapason::watch
