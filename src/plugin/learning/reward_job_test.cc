// A program that writes a reward file, from its first call to what is learned.
#include <deque>
#include <fstream>

#include "base/temporary_file.h"
#include "base/text.h"
#include "plugin/learning/testing.h"

namespace diapason::plugin {
namespace {

// Tree takes 1 ms, what the library would choose takes 2 ms.
class RewardJob : public LearningJob {
 protected:
  void Start(const std::string& reward) {
    LearningOptions options = OptionsWith(reward);
    options.reward_file = path_;
    options.learn.budget = 0.2;
    Restart(options);
  }
  void CallUnlogged(int calls) {
    for (int i = 0; i < calls; ++i, ++made_) Call();
    Poll();
  }
  // Makes calls; each one's line is written after `late` further ones. Returns how many of the last
  // thousand ran tree.
  int Run(int calls, size_t late = 0) {
    std::vector<bool> tree;
    for (int i = 0; i < calls; ++i) {
      tree.push_back(Call().config.algorithm == kTree);
      ++made_;
      if (iterations_) learning_->handover()->Mark(RewardSource::kPattern, now_ + 0.001);
      lines_.push_back(Line(tree.back() ? 1.0 : 2.0));
      if (late > 0) Poll();
      for (; lines_.size() > late; lines_.pop_front()) Append(lines_.front());
      Poll();
    }
    return static_cast<int>(
        std::count(tree.end() - std::min<ptrdiff_t>(1000, calls), tree.end(), true));
  }
  void Append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }
  std::string Line(double milliseconds) const {
    const std::string number = numbered_ ? Format(",{}", made_) : "";
    return Format("allreduce,{},1,1,{}{}\n", kBytes, milliseconds, number);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/rewards.log";
  std::deque<std::string> lines_;
  bool numbered_ = false;
  bool iterations_ = false;  // can be found in the order of calls
  int made_ = 0;
};

TEST_F(RewardJob, LearnsFromALineForEveryCall) {
  Start("file");
  EXPECT_GT(Run(6000), 800);
  EXPECT_TRUE(HasSaid("by file")) << Said();
}

TEST_F(RewardJob, CallsThatWereNotLoggedDoNotShiftTheOthers) {
  for (const int unlogged : {1, 5, 10}) {
    Start("file");
    CallUnlogged(unlogged);
    Run(3000);
    EXPECT_FALSE(HasSaid("by file")) << Said();
  }
}

TEST_F(RewardJob, LinesAheadOfTheFirstLookBelongToTheFirstCalls) {
  Append(Line(7.0));  // of an earlier job
  Start("file");
  for (int i = 0; i < 20; ++i) {
    Call();
    Append(Line(2.0));
  }
  EXPECT_GT(Run(6000), 800);
  EXPECT_TRUE(HasSaid("by file")) << Said();
}

TEST_F(RewardJob, LinesWithNumbersMayBeginAndComeLate) {
  Start("file");
  CallUnlogged(5);
  numbered_ = true;
  EXPECT_GT(Run(6000, 3), 800);
  EXPECT_TRUE(HasSaid("by file")) << Said();
}

TEST_F(RewardJob, AFileThatIsNotProvenReplacesNothing) {
  Start("auto");
  iterations_ = true;
  CallUnlogged(5);
  Run(3000);
  EXPECT_TRUE(HasSaid("by pattern")) << Said();
  EXPECT_FALSE(HasSaid("by file")) << Said();
}

TEST_F(RewardJob, AFileThatBecomesIncompleteIsReplaced) {
  Start("auto");
  iterations_ = true;
  Run(300);
  EXPECT_TRUE(HasSaid("by file")) << Said();
  Said().clear();
  CallUnlogged(5);
  Run(5000);
  EXPECT_TRUE(HasSaid("5 calls behind")) << Said();
  EXPECT_TRUE(HasSaid("by pattern")) << Said();
}

TEST_F(RewardJob, NothingIsTriedOnceTheOnlySourceIsGone) {
  Start("file");
  Run(70);
  EXPECT_TRUE(HasSaid("by file")) << Said();
  ASSERT_FALSE(HasSaid("as fast as")) << "nothing is decided yet: " << Said();
  CallUnlogged(5);
  Run(5000);
  EXPECT_TRUE(HasSaid("they are not used any more")) << Said();
  EXPECT_EQ(Run(1000), 0) << Said();
}

TEST_F(RewardJob, ItIsSaidThatTheFileIsNotThere) {
  Start("file");
  CallUnlogged(1);
  for (int i = 0; i < 4000; ++i) CallUnlogged(1);
  EXPECT_FALSE(HasSaid("nothing is learned")) << Said();
  for (int i = 0; i < 200; ++i) CallUnlogged(1);
  EXPECT_TRUE(HasSaid("calls: the reward file " + path_ + " is not there")) << Said();
}

TEST_F(RewardJob, ItIsSaidThatTheLinesLag) {
  Start("file");
  CallUnlogged(5);
  Run(5000);
  EXPECT_TRUE(HasSaid("nothing is learned after 4")) << Said();
  EXPECT_TRUE(HasSaid(path_ + " for allreduce up to 1MiB are at least 5 calls behind")) << Said();
  Said().clear();
  Run(5000);
  EXPECT_EQ(Said(), "") << "once";
}

TEST_F(RewardJob, ItIsSaidThatTheLinesAreForOtherRanks) {
  Start("file");
  for (int i = 0; i < 4200; ++i) {
    CallUnlogged(1);
    Append(Format("allreduce,{},2,8,1.0\n", kBytes));
  }
  EXPECT_TRUE(HasSaid("are for another communicator: 2 nodes and 8 ranks")) << Said();
  EXPECT_TRUE(HasSaid("and this one has 1 and 1")) << Said();
}

TEST_F(RewardJob, ItIsSaidWhichSourceIsMissing) {
  Start("step");
  for (int i = 0; i < 4200; ++i) CallUnlogged(1);
  EXPECT_TRUE(HasSaid("calls: diapason_step was not called\n")) << Said();
}

TEST_F(RewardJob, ItIsSaidThatTheFileIsNotUsedBesideAnotherSource) {
  Start("auto");
  iterations_ = true;
  CallUnlogged(5);
  Run(5000);
  EXPECT_FALSE(HasSaid("nothing is learned")) << Said();
  EXPECT_TRUE(HasSaid("the reward file is not used: ")) << Said();
}

TEST_F(RewardJob, NothingIsSaidWhereItLearns) {
  Start("file");
  Run(6000);
  EXPECT_FALSE(HasSaid("nothing is learned")) << Said();
  EXPECT_FALSE(HasSaid("is not used")) << Said();
}

}  // namespace
}  // namespace diapason::plugin
