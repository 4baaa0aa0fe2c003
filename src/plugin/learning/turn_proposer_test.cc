// The default and the policy take turns: on all ranks, and in all contexts of all communicators.
#include "plugin/learning/turn_proposer.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "plugin/learning/learning.h"
#include "plugin/learning/learning_worker.h"
#include "plugin/learning/testing.h"

namespace diapason::plugin {
namespace {

using Turn = LearningContext::Ready::Turn;

constexpr double kTurnSeconds = 2;
constexpr uint64_t kSmall = 1 << 10;

// A communicator of two ranks, as both of them see it.
class ComparedPair {
 public:
  ComparedPair(MapStore* store, std::string prefix) {
    policy::Policy policy;
    policy::Rule rule;
    rule.min_bytes = kSmall / 2;
    rule.max_bytes = kBytes;
    rule.config = {kTree, kSimple, 0};
    policy.rules.push_back(rule);
    for (int rank = 0; rank < 2; ++rank) {
      LearningOptions options;
      options.store = options.calls_store = store;
      options.waker = &waker_;
      options.prefix = prefix;
      options.rank = rank;
      options.shape = {1, 2};
      options.host.version = 22800;
      options.compare = true;
      options.turn_seconds = kTurnSeconds;
      options.learned = "/nonexistent/folder/learned.conf";
      ranks_.push_back(
          std::make_shared<Learning>(options, policy, HostLog(nullptr, options.host), nullptr));
      workers_.push_back(std::make_unique<LearningWorker>(
          std::shared_ptr<LearningHandover>(ranks_[rank], ranks_[rank]->handover())));
    }
    std::fill(std::begin(cells_), std::end(cells_), 10.0f);
  }

  // A call on both ranks, which has to get one answer.
  Turn Call(uint64_t bytes = kBytes, bool captured = false) {
    ++group_;
    Turn turns[2] = {};
    for (int rank = 0; rank < 2; ++rank) {
      ranks_[rank]->Called(captured, group_);
      const LearningContext::Ready* answer =
          ranks_[rank]->Ask(Collective::kAllReduce, bytes, {cells_, 7, 3});
      EXPECT_NE(answer, nullptr);
      EXPECT_FALSE(answer->lost);
      EXPECT_TRUE(answer->config.IsDefault());
      turns[rank] = answer->turn;
      ranks_[rank]->Launched(group_, nullptr);
    }
    EXPECT_EQ(turns[0], turns[1]) << "call " << group_;
    return turns[0];
  }
  // Rank 1 may be in another process, with a watch of its own.
  void Poll(double now, JobWatch* first, JobWatch* second) {
    workers_[0]->Poll(now, first);
    workers_[1]->Poll(now, second);
  }
  LearningWorker& worker(int rank) { return *workers_[static_cast<size_t>(rank)]; }

 private:
  Waker waker_;
  std::vector<std::shared_ptr<Learning>> ranks_;
  std::vector<std::unique_ptr<LearningWorker>> workers_;
  float cells_[21];
  uint64_t group_ = 0;
};

// Two communicators whose rank 0 is in different processes, with other numbers of calls.
TEST(TurnProposer, AllContextsOfAllCommunicatorsChangeOverTogether) {
  MapStore store;
  ComparedPair data(&store, "c1.");
  ComparedPair tensor(&store, "c2.");
  JobWatch one;
  JobWatch two;
  constexpr double kStep = 0.02;  // an iteration
  int pure[2] = {};
  int mixed = 0;
  int changes = 0;
  Turn last = Turn::kDefault;
  for (int step = 0; step < 3000; ++step) {
    const double now = 1 + step * kStep;
    const Turn turn = data.Call();
    bool same = true;
    for (int i = 0; i < 7; ++i) same = tensor.Call() == turn && same;
    for (int i = 0; i < 3; ++i) same = tensor.Call(kSmall) == turn && same;
    // Every third step has calls of another kind, so that no count of calls fits all steps.
    if (step % 3 == 0) same = data.Call(kSmall) == turn && same;
    data.Poll(now, &one, &two);
    tensor.Poll(now + kStep / 2, &two, &one);
    if (same) ++pure[turn == Turn::kPolicy];
    mixed += !same;
    changes += same && turn != last;
    if (same) last = turn;
  }
  // 60 seconds are 30 turns, which change over 15 times.
  EXPECT_GE(changes, 12);
  EXPECT_GE(pure[0], 800);
  EXPECT_GE(pure[1], 800);
  EXPECT_LE(mixed, 900);
}

TEST(TurnProposer, WithoutProposalsTheDefaultRuns) {
  MapStore store;
  ComparedPair pair(&store, "c.");
  for (int i = 0; i < 500; ++i) EXPECT_EQ(pair.Call(), Turn::kDefault);
}

// A graph keeps the configuration it was captured with: the same in both turns.
TEST(TurnProposer, CapturedCallsAreTheDefaultInEveryTurn) {
  MapStore store;
  ComparedPair pair(&store, "c.");
  JobWatch job;
  bool seen = false;
  for (int step = 0; step < 1000; ++step) {
    seen = pair.Call() == Turn::kPolicy || seen;
    EXPECT_EQ(pair.Call(kBytes, true), Turn::kDefault);
    pair.Poll(1 + step * 0.02, &job, &job);
  }
  EXPECT_TRUE(seen);
}

TEST(TurnProposer, ACommunicatorMayComeAndGo) {
  MapStore store;
  ComparedPair lasting(&store, "c1.");
  JobWatch job;
  int policy = 0;
  double now = 1;
  for (int generation = 0; generation < 6; ++generation) {
    ComparedPair passing(&store, "c2." + std::to_string(generation) + ".");
    for (int step = 0; step < 400; ++step) {
      lasting.Call();
      policy += passing.Call() == Turn::kPolicy;
      now += 0.01;
      lasting.Poll(now, &job, &job);
      passing.Poll(now, &job, &job);
    }
    for (const int rank : {0, 1}) {
      passing.worker(rank).End(std::chrono::steady_clock::now() + agree::kUsualLimit);
    }
  }
  EXPECT_GE(policy, 400);
}

}  // namespace
}  // namespace diapason::plugin
