#include "plugin/learning/learning.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <utility>

#include "plugin/learning/testing.h"

namespace diapason::plugin {
namespace {

TEST_F(LearningTest, ACallCountsOnceItsGroupIsLaunched) {
  learning_->Called(false, ++group_);
  Ask();
  EXPECT_EQ(Made(), 0u) << "asked, not launched";
  learning_->Launched(group_ + 1, nullptr);
  EXPECT_EQ(Made(), 0u) << "another group's kernel";
  learning_->Launched(group_, nullptr);
  EXPECT_EQ(Made(), 1u);
  learning_->Called(false, ++group_);
  Ask();
  learning_->Called(false, ++group_);
  EXPECT_EQ(Made(), 1u) << "the simulated group is dropped";
  Ask();
  Ask();
  learning_->Launched(group_, nullptr);
  EXPECT_EQ(Made(), 2u) << "asked twice about one call";
}

// From 2.31 on a call can have a configuration of its own, which leaves some pairs of the table.
TEST_F(LearningTest, ACallWithItsOwnConfigurationCountsAndIsNotMeasured) {
  learning_ = Make(true);
  Call();
  const LearningContext* context = learning_->last_context();
  ASSERT_NE(context, nullptr);
  const float tree = std::exchange(cells_[kTree * 3 + kSimple], -1.0f);
  Call();
  EXPECT_EQ(learning_->last_context(), nullptr);
  EXPECT_EQ(learning_->last_index(), 1u);
  cells_[kTree * 3 + kSimple] = tree;
  Call();
  EXPECT_EQ(learning_->last_context(), context);
  EXPECT_EQ(learning_->last_index(), 2u) << "it has counted";
  EXPECT_EQ(Made(), 3u);
  // A wider table shows that those before it were limited.
  cells_[kNvls * 3 + kSimple] = 5.0f;
  Call();
  EXPECT_EQ(learning_->last_context(), context);
  cells_[kNvls * 3 + kSimple] = -1.0f;
  Call();
  EXPECT_EQ(learning_->last_context(), nullptr);
}

TEST_F(LearningTest, UpTo230EveryCallIsMeasured) {
  Call();
  cells_[kTree * 3 + kSimple] = -1.0f;
  Call();
  EXPECT_NE(learning_->last_context(), nullptr);
}

TEST_F(LearningTest, MarksAndReportsNeedAContextThatWasCalled) {
  LearningHandover& handover = *learning_->handover();
  EXPECT_FALSE(handover.Report(Collective::kAllReduce, kBytes, 1e-3)) << "no such context yet";
  Call();
  EXPECT_TRUE(handover.Report(Collective::kAllReduce, kBytes, 1e-3));
  EXPECT_FALSE(handover.Report(Collective::kAllReduce, 4 * kBytes, 1e-3)) << "another size band";
  EXPECT_FALSE(handover.Report(Collective::kAllReduce, kBytes, 0));
  handover.Mark(RewardSource::kStep, 1.0);
  const ContextHandover& context = *handover.Contexts().front();
  ASSERT_EQ(context.marks.size(), 1u);
  EXPECT_EQ(context.marks.front().calls, 1u);
  EXPECT_EQ(context.Name(), "allreduce up to 1MiB");
}

TEST_F(LearningTest, WhatTheBackgroundProposesIsWhatCallsRun) {
  const Config faster{kTree, kSimple, 0};
  double now = 1;
  const LearningContext::Ready* answer = nullptr;
  for (int i = 0; i < 100000; ++i) {
    answer = &Call();
    const double seconds = answer->config == faster ? 1e-3 : 2e-3;
    ASSERT_TRUE(learning_->handover()->Report(Collective::kAllReduce, kBytes, seconds));
    worker_.Poll(now += 0.01, &watch_);
    if (answer->config == faster && answer->reason == Reason::kLearned) break;
  }
  EXPECT_EQ(answer->config, faster);
  EXPECT_EQ(answer->reason, Reason::kLearned);
}

// The background looks only now and then, so that a proposal takes as long as some calls. Epochs
// are agreed on so far ahead that hardly one is held, while configurations are tried.
TEST_F(LearningTest, ProposalsAreAheadOfTheCallsByWhatTheyTake) {
  for (const int calls_per_poll : {1, 5, 12, 30}) {
    store_.Clear();
    group_ = 0;
    learning_ = Make();
    LearningWorker worker({learning_, learning_->handover()});
    double now = 1;
    std::set<uint32_t> held;
    std::set<uint32_t> trying;
    uint32_t last = 0;
    for (int i = 0; i < 4000; ++i) {
      const LearningContext::Ready& answer = Call();
      last = answer.epoch;
      if (answer.reason == Reason::kHeld) held.insert(answer.epoch);
      if (answer.reason == Reason::kTrying) trying.insert(answer.epoch);
      const double seconds = answer.config == Config{kTree, kSimple, 0} ? 0.98e-3 : 1e-3;
      ASSERT_TRUE(learning_->handover()->Report(Collective::kAllReduce, kBytes, seconds));
      if (i % calls_per_poll == 0) worker.Poll(now += 0.01, &watch_);
    }
    EXPECT_GE(trying.size(), 3u) << calls_per_poll << " calls";
    // The first proposals are late before their time is known.
    EXPECT_LE(held.size(), 3u) << calls_per_poll << " calls, of " << last << " epochs";
  }
}

TEST_F(LearningTest, CallsAndBackgroundRunAtTheSameTime) {
  constexpr uint64_t kCalls = 20000;
  std::atomic<bool> over{false};
  std::thread background([&] {
    for (double now = 1; !over; now += 0.01) worker_.Poll(now, &watch_);
  });
  std::thread program([&] {
    while (!over) {
      learning_->handover()->Mark(RewardSource::kStep, 1.0);
      learning_->handover()->Report(Collective::kAllReduce, kBytes, 1e-3);
    }
  });
  bool lost = false;
  for (uint64_t i = 0; i < kCalls; ++i) {
    const LearningContext::Ready& answer = Call();
    lost = lost || answer.lost;
    learning_->RecordActual(learning_->last_context(), answer.config,
                            {learning_->last_index(), i, kRing, kSimple, 8});
    learning_->RecordTime(*learning_->last_context(), learning_->last_index(), 1e-3);
  }
  over = true;
  background.join();
  program.join();
  EXPECT_FALSE(lost);
  EXPECT_EQ(Made(), kCalls);
}

TEST_F(LearningTest, TheEndReleasesTheCellsOnce) {
  Call();
  worker_.End(std::chrono::steady_clock::now());
  EXPECT_EQ(store_.done, 1);
  EXPECT_FALSE(worker_.Poll(1, &watch_));
  EXPECT_EQ(store_.done, 1);
}

TEST_F(LearningTest, TheWorkerKeepsTheHandoverAlive) {
  Call();
  const std::weak_ptr<Learning> watched = learning_;
  learning_.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_TRUE(worker_.Poll(1, &watch_)) << "still in its first epochs";
}

TEST(BackgroundStoreTest, AStoreThatFailsIsLeftAloneForAMoment) {
  MapStore cells;
  BackgroundStore store(&cells);
  ASSERT_TRUE(store.Propose("a.1", "one", 1.0).ok());
  cells.gone = true;
  std::vector<int> missing{0, 1};
  std::vector<std::string> taken;
  const auto gather = [&](double now) {
    return store.Gather(
        &missing, now, [](int rank) { return "a." + std::to_string(rank); },
        [&](const std::string& text) { taken.push_back(text); });
  };
  EXPECT_FALSE(gather(1.0));
  EXPECT_TRUE(store.away(1.1));
  cells.gone = false;
  EXPECT_FALSE(gather(1.1));
  EXPECT_TRUE(taken.empty()) << "not asked while it is away";
  EXPECT_FALSE(store.away(1.3));
  EXPECT_FALSE(gather(1.3));
  EXPECT_EQ(taken, std::vector<std::string>{"one"});
  EXPECT_EQ(missing, std::vector<int>{0});
  ASSERT_TRUE(store.Propose("a.0", "zero", 1.4).ok());
  EXPECT_TRUE(gather(1.4));
}

}  // namespace
}  // namespace diapason::plugin
