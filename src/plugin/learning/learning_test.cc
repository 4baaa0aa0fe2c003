#include "plugin/learning/learning.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <thread>

#include "plugin/learning/learning_worker.h"

namespace diapason::plugin {
namespace {

constexpr uint64_t kBytes = 1 << 20;

class MapStore : public agree::CellStore {
 public:
  using agree::CellStore::Forget;
  using agree::CellStore::Propose;
  using agree::CellStore::Read;
  Result<std::string> Propose(std::string_view key, std::string_view value, Deadline) override {
    const std::lock_guard lock(mutex_);
    return cells_.emplace(key, value).first->second;
  }
  Result<std::optional<std::string>> Read(std::string_view key, Deadline) override {
    const std::lock_guard lock(mutex_);
    if (gone) return Unavailable("it is gone");
    const auto found = cells_.find(std::string(key));
    if (found == cells_.end()) return std::optional<std::string>();
    return std::optional<std::string>(found->second);
  }
  void Forget(std::string_view, Deadline) override {}
  void Done(std::string_view, int, Deadline) override { ++done; }
  double Fullness() override { return 0; }
  std::string Describe() const override { return "a map"; }
  bool Mine() const override { return true; }

  std::atomic<int> done{0};
  std::atomic<bool> gone{false};

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> cells_;
};

// The only rank of a communicator, with the table of costs that it is asked with.
class LearningTest : public testing::Test {
 protected:
  LearningTest() : learning_(Make()), worker_({learning_, learning_->handover()}) {
    std::fill(std::begin(cells_), std::end(cells_), -1.0f);
    for (const int algorithm : {kTree, kRing}) cells_[algorithm * 3 + kSimple] = 10.0f;
    cells_[kRing * 3 + kSimple] = 9.0f;
  }
  std::shared_ptr<Learning> Make() {
    LearningOptions options;
    options.store = options.calls_store = &store_;
    options.waker = &waker_;
    options.prefix = "c.";
    options.shape = {1, 1};
    options.host.version = 22800;
    options.reward = "report";
    options.arms = "offered";
    return std::make_shared<Learning>(options, policy::Policy(), HostLog(nullptr, options.host),
                                      nullptr);
  }
  const LearningContext::Ready& Ask() {
    const LearningContext::Ready* answer =
        learning_->Ask(Collective::kAllReduce, kBytes, {cells_, 7, 3});
    EXPECT_NE(answer, nullptr);
    return *answer;
  }
  // One call that is launched.
  const LearningContext::Ready& Call() {
    learning_->Called(false, ++group_);
    const LearningContext::Ready& answer = Ask();
    learning_->Launched(group_, nullptr);
    return answer;
  }
  uint64_t Made() {
    const auto contexts = learning_->handover()->Contexts();
    return contexts.empty() ? 0 : learning_->handover()->CallsMade(*contexts.front());
  }

  MapStore store_;
  Waker waker_;
  FreezeWatch freeze_;
  std::shared_ptr<Learning> learning_;
  LearningWorker worker_;
  float cells_[21];
  uint64_t group_ = 0;
};

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
    worker_.Poll(now += 0.01, &freeze_);
    if (answer->config == faster && answer->reason == Reason::kLearned) break;
  }
  EXPECT_EQ(answer->config, faster);
  EXPECT_EQ(answer->reason, Reason::kLearned);
}

TEST_F(LearningTest, CallsAndBackgroundRunAtTheSameTime) {
  constexpr uint64_t kCalls = 20000;
  std::atomic<bool> over{false};
  std::thread background([&] {
    for (double now = 1; !over; now += 0.01) worker_.Poll(now, &freeze_);
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
  EXPECT_FALSE(worker_.Poll(1, &freeze_));
  EXPECT_EQ(store_.done, 1);
}

TEST_F(LearningTest, TheWorkerKeepsTheHandoverAlive) {
  Call();
  const std::weak_ptr<Learning> watched = learning_;
  learning_.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_TRUE(worker_.Poll(1, &freeze_)) << "still in its first epochs";
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
