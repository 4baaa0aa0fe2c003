// Cycles, from the launches of a program to the reward that learning takes: with a driver whose
// kernels end when a test says so.
#include "plugin/learning/testing.h"

extern "C" void played_cuda_set(bool kernels_end, float kernel_milliseconds);

namespace diapason::plugin {
namespace {

constexpr float kLong = 1e6f;  // milliseconds: longer than any cycle of a test
constexpr float kShort = 1e-9f;

class Cycles : public LearningJob {
 protected:
  void Start(const std::string& reward) { Restart(OptionsWith(reward)); }
  void Timed(bool captured = false, uint64_t bytes = kBytes) {
    learning_->Called(captured, ++group_);
    learning_->Ask(Collective::kAllReduce, bytes, {cells_, 7, 3});
    learning_->Launched(group_, nullptr);
    learning_->LaunchEnded();
  }
  void Run(int calls) {
    for (int i = 0; i < calls; ++i) {
      Timed();
      Poll();
    }
  }
  // Calls whose cycles are planted, tree's half as long. Returns how many of them ran tree.
  int RunPlanted(int calls, bool waits) {
    int tree = 0;
    for (int i = 0; i < calls; ++i) {
      const bool faster = Call().config.algorithm == kTree;
      tree += faster ? 1 : 0;
      const uint64_t index = learning_->last_index();
      learning_->handover()->cycles.Push({0, index, faster ? 1e-3 : 2e-3, waits});
      learning_->handover()->samples.Push({0, index, 1.5e-3});
      Poll();
    }
    return tree;
  }
  std::vector<LearningHandover::Cycle> Taken() {
    std::vector<LearningHandover::Cycle> cycles;
    LearningHandover::Cycle cycle;
    while (learning_->handover()->cycles.Pop(&cycle)) cycles.push_back(cycle);
    return cycles;
  }
};

TEST_F(Cycles, GoFromACallToTheNextOne) {
  played_cuda_set(true, kLong);
  Start("cycle");
  for (int i = 0; i < 4; ++i) Timed();
  const std::vector<LearningHandover::Cycle> cycles = Taken();
  ASSERT_EQ(cycles.size(), 3u);
  for (size_t i = 0; i < cycles.size(); ++i) {
    EXPECT_EQ(cycles[i].index, i);
    EXPECT_GT(cycles[i].seconds, 0);
    EXPECT_TRUE(cycles[i].ended);
  }
  played_cuda_set(false, kLong);
  Timed();
  ASSERT_EQ(Taken().size(), 1u);
  Timed();
  const std::vector<LearningHandover::Cycle> unended = Taken();
  ASSERT_EQ(unended.size(), 1u);
  EXPECT_FALSE(unended[0].ended);
}

TEST_F(Cycles, HaveNoOtherCallBetween) {
  played_cuda_set(true, kLong);
  Start("cycle");
  Timed();
  Timed(false, 64 * kBytes);
  Timed();
  EXPECT_TRUE(Taken().empty()) << "another size";
  Timed(true);
  Timed();
  EXPECT_TRUE(Taken().empty()) << "a captured call";
  Timed();
  EXPECT_EQ(Taken().size(), 1u);
}

TEST_F(Cycles, AreNotRecordedWhereTheyCannotBeTheReward) {
  played_cuda_set(true, kLong);
  for (const char* reward : {"gpu", "step", "report"}) {
    Start(reward);
    for (int i = 0; i < 4; ++i) Timed();
    EXPECT_TRUE(Taken().empty()) << reward;
  }
}

TEST_F(Cycles, AreTheRewardOfAProgramThatWaits) {
  played_cuda_set(true, kLong);
  Start("auto");
  Run(400);
  EXPECT_TRUE(HasSaid("by cycle")) << Said();
}

TEST_F(Cycles, AreNotTheRewardOfAProgramThatLaunchesAhead) {
  played_cuda_set(false, kLong);
  Start("auto");
  Run(400);
  EXPECT_FALSE(HasSaid("by cycle")) << Said();
  EXPECT_TRUE(HasSaid("by gpu")) << Said();
}

TEST_F(Cycles, AreNotTheRewardOfCallsThatAreShort) {
  played_cuda_set(true, kShort);
  Start("auto");
  Run(400);
  EXPECT_FALSE(HasSaid("by cycle")) << Said();
  EXPECT_TRUE(HasSaid("by gpu")) << Said();
}

TEST_F(Cycles, AreLearnedFrom) {
  Start("cycle");
  RunPlanted(3000, true);
  EXPECT_TRUE(HasSaid("by cycle")) << Said();
  EXPECT_GT(RunPlanted(1000, true), 800) << Said();
}

TEST_F(Cycles, OfAProgramThatCeasesToWaitAreGivenUp) {
  Start("auto");
  RunPlanted(72, true);
  ASSERT_TRUE(HasSaid("by cycle")) << Said();
  EXPECT_FALSE(HasSaid("by gpu")) << Said();
  RunPlanted(200, false);
  EXPECT_TRUE(HasSaid("by gpu")) << Said();
}

TEST_F(Cycles, ItIsSaidWhyTheyAreNotTheReward) {
  played_cuda_set(false, kLong);
  Start("cycle");
  Run(6000);
  EXPECT_TRUE(HasSaid("the program does not wait for its calls")) << Said();
}

}  // namespace
}  // namespace diapason::plugin
