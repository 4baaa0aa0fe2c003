// The parts of this component that have threads: the watchdog, the queue and the lanes.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "comm/call_queue.h"
#include "comm/lanes.h"
#include "comm/watchdog.h"

namespace diapason::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

TEST(CallWatch, ACallWithinItsLimitIsLeftAlone) {
  std::atomic<int> expired{0};
  CallWatch watch([&] { ++expired; });
  for (uint64_t number = 1; number <= 100000; ++number) {
    watch.Begin(number, seconds(600));
    ASSERT_TRUE(watch.End());
  }
  EXPECT_EQ(expired.load(), 0);
}

TEST(CallWatch, ACallOverItsLimitIsExpiredOnce) {
  std::atomic<int> expired{0};
  CallWatch watch([&] { ++expired; });
  CallWatch other([] { FAIL() << "the other call is within its limit"; });
  watch.Begin(1, milliseconds(1));
  other.Begin(1, seconds(600));
  const auto limit = steady_clock::now() + seconds(120);
  while (expired.load() == 0 && steady_clock::now() < limit) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_FALSE(watch.End());
  EXPECT_TRUE(other.End());
  EXPECT_EQ(expired.load(), 1);
}

TEST(CallWatch, WatchesComeAndGoOnSeveralThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 50; ++round) {
        CallWatch watch([] {});
        watch.Begin(1, seconds(600));
        EXPECT_TRUE(watch.End());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CallQueue, CallsRunInOrder) {
  std::vector<int> order;
  CallQueue queue;
  EXPECT_TRUE(queue.Idle());
  std::vector<std::unique_ptr<PendingCall>> pending;
  for (int i = 0; i < 50; ++i) {
    pending.push_back(queue.Add([&order, i]() -> Status {
      order.push_back(i);
      return i == 7 ? IoError("seven") : Status();
    }));
  }
  const Deadline deadline = steady_clock::now() + seconds(120);
  for (size_t i = pending.size(); i-- > 0;) {
    EXPECT_EQ(pending[i]->Wait(deadline).ok(), i != 7);
    EXPECT_TRUE(pending[i]->Done());
    EXPECT_GE(pending[i]->Seconds(), 0);
  }
  EXPECT_TRUE(queue.Idle());
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(CallQueue, AWaitHasALimitAndTheQueueEndsWhatItHas) {
  std::atomic<bool> open{false};
  std::atomic<bool> ran{false};
  {
    CallQueue queue;
    const std::unique_ptr<PendingCall> first = queue.Add([&]() -> Status {
      while (!open.load()) std::this_thread::sleep_for(milliseconds(1));
      return {};
    });
    const std::unique_ptr<PendingCall> second = queue.Add([&]() -> Status {
      ran.store(true);
      return {};
    });
    EXPECT_EQ(first->Wait(steady_clock::now() + milliseconds(20)).code(), ErrorCode::kTimeout);
    EXPECT_FALSE(first->Done());
    EXPECT_FALSE(queue.Idle());
    open.store(true);
  }
  EXPECT_TRUE(ran.load());
}

TEST(Lanes, PartsRunSideBySide) {
  Lanes lanes;
  for (const size_t count : {size_t{1}, size_t{4}, size_t{2}, size_t{7}, size_t{0}}) {
    std::vector<int> ran(8);
    std::atomic<size_t> inside{0};
    const Status status = lanes.Run(count, [&](size_t part) -> Status {
      ++inside;
      // All are inside at once, or this would never end.
      const auto limit = steady_clock::now() + seconds(120);
      while (inside.load() < count && steady_clock::now() < limit) std::this_thread::yield();
      ++ran[part];
      return {};
    });
    EXPECT_TRUE(status.ok());
    for (size_t part = 0; part < ran.size(); ++part) EXPECT_EQ(ran[part], part < count ? 1 : 0);
  }
}

TEST(Lanes, TheFirstFailureIsReported) {
  Lanes lanes;
  const Status status = lanes.Run(4, [](size_t part) -> Status {
    return part >= 2 ? IoError("part " + std::to_string(part)) : Status();
  });
  EXPECT_EQ(status.message(), "part 2");
}

}  // namespace
}  // namespace diapason::comm
