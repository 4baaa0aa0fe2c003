// A program outside a job says what runs: on all ranks, in all contexts.
#include "plugin/learning/order_proposer.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "plugin/learning/learning.h"
#include "plugin/learning/learning_worker.h"
#include "plugin/learning/testing.h"

namespace diapason::plugin {
namespace {

constexpr uint64_t kSmall = 1 << 10;
constexpr Config kTreeSimple{kTree, kSimple, 0};

policy::Order OrderFor(uint64_t bytes, const Config& config, int64_t ranks = 2) {
  policy::Order order;
  order.length = std::chrono::milliseconds(400);
  policy::Rule rule;
  rule.min_bytes = bytes / 2 + 1;
  rule.max_bytes = bytes;
  rule.config = config;
  rule.ranks = ranks;
  order.rows.rules.push_back(rule);
  return order;
}

// A communicator of two ranks, as both of them see it.
class OrderedPair {
 public:
  explicit OrderedPair(MapStore* store) {
    for (int rank = 0; rank < 2; ++rank) {
      LearningOptions options;
      options.store = options.calls_store = store;
      options.waker = &waker_;
      options.prefix = "c.";
      options.rank = rank;
      options.shape = {1, 2};
      options.host.version = 22800;
      options.ordered = true;
      options.learned = "/nonexistent/folder/learned.conf";
      ranks_.push_back(std::make_shared<Learning>(options, policy::Policy(),
                                                  HostLog(nullptr, options.host), nullptr));
      workers_.push_back(std::make_unique<LearningWorker>(
          std::shared_ptr<LearningHandover>(ranks_[rank], ranks_[rank]->handover())));
    }
    std::fill(std::begin(cells_), std::end(cells_), -1.0f);
    for (const int algorithm : {kTree, kRing}) cells_[algorithm * 3 + kSimple] = 10.0f;
  }

  // A call on both ranks, which has to get one answer.
  Config Call(uint64_t bytes = kBytes, bool captured = false) {
    ++group_;
    Config configs[2];
    for (int rank = 0; rank < 2; ++rank) {
      ranks_[rank]->Called(captured, group_);
      const LearningContext::Ready* answer =
          ranks_[rank]->Ask(Collective::kAllReduce, bytes, {cells_, 7, 3});
      EXPECT_NE(answer, nullptr);
      EXPECT_FALSE(answer->lost);
      configs[rank] = answer->config;
      reason_ = answer->reason;
      ranks_[rank]->Launched(group_, nullptr);
    }
    EXPECT_EQ(configs[0], configs[1]) << "call " << group_;
    return configs[0];
  }
  // Some iterations of two kinds of calls; what the last calls ran.
  void Run(int iterations) {
    for (int i = 0; i < iterations; ++i) {
      now_ += 0.02;
      large = Call();
      small = Call(kSmall);
      workers_[0]->Poll(now_, &job_);
      workers_[1]->Poll(now_, &job_);
    }
  }
  Reason reason() const { return reason_; }

  Config large;
  Config small;

 private:
  Waker waker_;
  JobWatch job_;
  double now_ = 1;
  std::vector<std::shared_ptr<Learning>> ranks_;
  std::vector<std::unique_ptr<LearningWorker>> workers_;
  float cells_[21];
  uint64_t group_ = 0;
  Reason reason_ = Reason::kNoPolicy;
};

class OrderProposerTest : public testing::Test {
 protected:
  void Give(const policy::Order& order) {
    ASSERT_TRUE(orders_.Give(policy::OrderText(order)).ok());
  }
  MapStore store_;
  agree::OrderLog orders_{&store_};
  OrderedPair pair_{&store_};
};

TEST_F(OrderProposerTest, TheLibraryDecidesUntilThereIsAnOrder) {
  pair_.Run(200);
  EXPECT_TRUE(pair_.large.IsDefault());
  EXPECT_TRUE(pair_.small.IsDefault());
}

TEST_F(OrderProposerTest, EveryContextRunsWhatTheOrderSays) {
  pair_.Run(100);
  Give(OrderFor(kBytes, kTreeSimple));
  pair_.Run(100);
  EXPECT_EQ(pair_.large, kTreeSimple);
  EXPECT_TRUE(pair_.small.IsDefault()) << "no row matches";
  Give(OrderFor(kSmall, {kRing, kSimple, 1}));
  pair_.Run(100);
  EXPECT_TRUE(pair_.large.IsDefault());
  EXPECT_EQ(pair_.small, (Config{kRing, kSimple, 1}));
  EXPECT_EQ(pair_.reason(), Reason::kTrying);
  Give({std::chrono::milliseconds(400), {}});
  pair_.Run(100);
  EXPECT_TRUE(pair_.small.IsDefault());
}

TEST_F(OrderProposerTest, CapturedCallsAreLeftToTheLibrary) {
  Give(OrderFor(kBytes, kTreeSimple));
  pair_.Run(100);
  EXPECT_EQ(pair_.large, kTreeSimple);
  EXPECT_TRUE(pair_.Call(kBytes, true).IsDefault());
}

TEST_F(OrderProposerTest, WhatARankDoesNotOfferIsNotTried) {
  Give(OrderFor(kBytes, {kTree, kLl, 0}));
  pair_.Run(100);
  EXPECT_TRUE(pair_.large.IsDefault());
  Give(OrderFor(kBytes, {99, 99, 0}));
  pair_.Run(100);
  EXPECT_TRUE(pair_.large.IsDefault());
}

TEST_F(OrderProposerTest, RowsForOtherShapesDoNotMatch) {
  Give(OrderFor(kBytes, kTreeSimple, 4));
  pair_.Run(100);
  EXPECT_TRUE(pair_.large.IsDefault());
}

TEST_F(OrderProposerTest, AnOrderThatCannotBeReadLeavesAllToTheLibrary) {
  Give(OrderFor(kBytes, kTreeSimple));
  pair_.Run(100);
  ASSERT_EQ(pair_.large, kTreeSimple);
  ASSERT_TRUE(orders_.Give("run faster").ok());
  pair_.Run(100);
  EXPECT_TRUE(pair_.large.IsDefault());
}

}  // namespace
}  // namespace diapason::plugin
