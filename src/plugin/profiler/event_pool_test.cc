#include "plugin/profiler/event_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace diapason::plugin {
namespace {

using Outcome = EventPool::Outcome;

class EventPoolTest : public testing::Test {
 protected:
  uint64_t Open(int channels, uint64_t context = 1, uint64_t tag = 7) {
    return pool_->Open({context, tag, channels, 0, 0, false});
  }
  Outcome Start(uint64_t run, int channel, uint64_t stamp) {
    return pool_->StartChannel(run, channel, stamp);
  }
  Outcome Stop(uint64_t run, int channel, uint64_t stamp) {
    return pool_->StopChannel(run, channel, stamp, &finished_, &result_);
  }

  std::unique_ptr<EventPool> pool_ = std::make_unique<EventPool>();
  bool finished_ = false;
  FinishedRun result_;
};

TEST_F(EventPoolTest, ARunIsFinishedWithItsLastChannel) {
  const uint64_t run = Open(3, 11, 22);
  EXPECT_EQ(Start(run, 0, 100), Outcome::kNoted);
  EXPECT_EQ(Start(run, 127, 90), Outcome::kNoted);
  EXPECT_EQ(Stop(run, 0, 150), Outcome::kNoted);
  EXPECT_FALSE(finished_);
  EXPECT_EQ(Start(run, 64, 120), Outcome::kNoted);
  EXPECT_EQ(Stop(run, 64, 190), Outcome::kNoted);
  EXPECT_FALSE(finished_) << "the two others have stopped, one has not";
  EXPECT_EQ(Stop(run, 127, 180), Outcome::kNoted);
  ASSERT_TRUE(finished_);
  EXPECT_EQ(result_.context, 11u);
  EXPECT_EQ(result_.tag, 22u);
  EXPECT_EQ(result_.start, 90u);
  EXPECT_EQ(result_.stop, 190u);
  EXPECT_TRUE(result_.sane);
}

TEST_F(EventPoolTest, NoChannelCountsTwice) {
  const uint64_t run = Open(2);
  EXPECT_EQ(Start(run, 1, 100), Outcome::kNoted);
  EXPECT_EQ(Start(run, 1, 50), Outcome::kRepeated);
  EXPECT_EQ(Stop(run, 1, 150), Outcome::kNoted);
  EXPECT_EQ(Stop(run, 1, 400), Outcome::kRepeated);
  EXPECT_FALSE(finished_);
  Start(run, 0, 101);
  Stop(run, 0, 160);
  ASSERT_TRUE(finished_);
  EXPECT_EQ(result_.start, 100u);
  EXPECT_EQ(result_.stop, 160u);
  EXPECT_EQ(Start(run, 2, 1), Outcome::kLate) << "one more than were announced";
  EXPECT_EQ(Stop(run, 0, 1), Outcome::kLate);
  EXPECT_FALSE(finished_);
}

TEST_F(EventPoolTest, WhatCannotBeIsRefused) {
  const uint64_t run = Open(1);
  EXPECT_EQ(Start(run, -1, 100), Outcome::kImpossible);
  EXPECT_EQ(Start(run, EventPool::kMostChannels, 100), Outcome::kImpossible);
  EXPECT_EQ(Stop(run, 0, 100), Outcome::kImpossible) << "it has not started";
  EXPECT_EQ(Stop(run, 4000, 100), Outcome::kImpossible);
  EXPECT_EQ(Start(run + 1, 0, 100), Outcome::kLate) << "no such run";
  EXPECT_EQ(Start(0, 0, 100), Outcome::kLate);
}

TEST_F(EventPoolTest, MissingAndBackwardStampsAreNotSane) {
  uint64_t run = Open(1);
  Start(run, 0, 0);
  Stop(run, 0, 100);
  EXPECT_TRUE(finished_ && !result_.sane);
  run = Open(1);
  Start(run, 0, 100);
  Stop(run, 0, 0);
  EXPECT_TRUE(finished_ && !result_.sane);
  run = Open(1);
  Start(run, 0, 100);
  Stop(run, 0, 99);
  EXPECT_TRUE(finished_ && !result_.sane);
  run = Open(1);
  Start(run, 0, 100);
  Stop(run, 0, 100);
  EXPECT_TRUE(finished_ && result_.sane) << "too short to be seen, but possible";
}

TEST_F(EventPoolTest, AnOverwrittenRunIsGone) {
  const uint64_t old = Open(1);
  Start(old, 0, 100);
  uint64_t last = 0;
  for (uint32_t i = 0; i < EventPool::kPlaces; ++i) last = Open(1);
  EXPECT_NE(old, last);
  EXPECT_EQ(Stop(old, 0, 200), Outcome::kLate);
  EXPECT_EQ(Start(old, 1, 200), Outcome::kLate);
  Start(last, 0, 300);
  Stop(last, 0, 400);
  ASSERT_TRUE(finished_);
  EXPECT_EQ(result_.start, 300u) << "the old one has left nothing";
}

TEST_F(EventPoolTest, DoubtfulRunsAreTakenNewestFirstAndOnce) {
  std::vector<uint64_t> runs;
  for (uint64_t i = 0; i < 6; ++i) {
    runs.push_back(Open(1, i == 2 ? 99 : 1, i));
    Start(runs[i], 0, 10 * i + 1);
    Stop(runs[i], 0, 10 * i + 2);
    if (i != 3 && i != 5) pool_->KeepInDoubt(runs[i]);
  }
  std::vector<uint64_t> tags;
  uint64_t from = runs[5];
  int steps = 100;
  while (pool_->TakeDoubtfulBefore(&from, 1, &steps, &result_)) tags.push_back(result_.tag);
  EXPECT_EQ(tags, (std::vector<uint64_t>{4, 1, 0})) << "2 is another's, 3 was believed";
  from = runs[5];
  EXPECT_FALSE(pool_->TakeDoubtfulBefore(&from, 1, &steps, &result_));
  from = runs[5];
  steps = 2;
  EXPECT_FALSE(pool_->TakeDoubtfulBefore(&from, 99, &steps, &result_)) << "three steps away";
  from = runs[5];
  steps = 3;
  EXPECT_TRUE(pool_->TakeDoubtfulBefore(&from, 99, &steps, &result_));
}

TEST_F(EventPoolTest, ManyThreadsFinishEveryRunOnce) {
  constexpr int kRuns = 200;
  constexpr int kChannels = 8;
  std::vector<uint64_t> runs;
  for (int i = 0; i < kRuns; ++i) {
    runs.push_back(Open(kChannels, 1, static_cast<uint64_t>(i) + 1));
  }
  std::atomic<int> finished{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int channel = 0; channel < kChannels; ++channel) {
    threads.emplace_back([&, channel] {
      for (int i = 0; i < kRuns; ++i) {
        const uint64_t base = 1000 * (static_cast<uint64_t>(i) + 1);
        pool_->StartChannel(runs[i], channel, base + static_cast<uint64_t>(channel));
        bool done = false;
        FinishedRun result;
        pool_->StopChannel(runs[i], channel, base + 500 + static_cast<uint64_t>(channel), &done,
                           &result);
        if (!done) continue;
        ++finished;
        if (result.start != base || result.stop != base + 500 + kChannels - 1) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(finished, kRuns);
  EXPECT_EQ(wrong, 0);
}

TEST_F(EventPoolTest, LateChildrenAndNewRunsMayMeet) {
  std::atomic<uint64_t> newest{Open(1)};
  std::atomic<bool> stop{false};
  std::thread late([&] {
    while (!stop) {
      const uint64_t run = newest.load();
      for (const uint64_t one : {run, run - EventPool::kPlaces, run - 1}) {
        pool_->StartChannel(one, 3, 5);
        bool done = false;
        FinishedRun result;
        pool_->StopChannel(one, 3, 6, &done, &result);
      }
    }
  });
  for (uint32_t i = 0; i < 5 * EventPool::kPlaces; ++i) newest = Open(2);
  stop = true;
  late.join();
  SUCCEED() << "for the sanitizers";
}

}  // namespace
}  // namespace diapason::plugin
