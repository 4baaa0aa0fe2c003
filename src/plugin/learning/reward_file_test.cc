#include "plugin/learning/reward_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_file.h"
#include "plugin/learning/learned_policy.h"
#include "policy/parse.h"

namespace diapason::plugin {
namespace {

class RewardFileTest : public testing::Test {
 protected:
  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  std::vector<learn::RewardLine> Poll(RewardFile* file) {
    problem_.clear();
    std::vector<learn::RewardLine> lines;
    EXPECT_TRUE(file->Poll(now_ += 1, &lines, &problem_));
    return lines;
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  const std::string path_ = folder_ + "/rewards.log";
  std::string problem_;
  double now_ = 0;
};

TEST_F(RewardFileTest, ReadsWhatIsAppendedAndSkipsWhatWasThere) {
  Append("allreduce,4096,1,8,9.0\n");
  RewardFile file(path_);
  EXPECT_TRUE(Poll(&file).empty());
  Append("allreduce,4194304,1,8,12.34\nallred");
  ASSERT_EQ(Poll(&file).size(), 1u);
  Append("uce,4194304,1,8,11.98\n");
  const auto lines = Poll(&file);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].bytes, 4194304u);
  EXPECT_DOUBLE_EQ(lines[0].seconds, 0.01198);
  EXPECT_EQ(problem_, "");
}

// The thread that follows the file may come after the program's first lines.
TEST_F(RewardFileTest, LinesBeforeTheFirstLookCount) {
  Append("allreduce,4096,1,8,9.0\n");
  RewardFile file(path_);
  Append("allreduce,4096,1,8,1.0\nallreduce,4096,1,8,2.0\n");
  EXPECT_EQ(Poll(&file).size(), 2u);
}

TEST_F(RewardFileTest, IsNotLookedAtAgainAtOnce) {
  RewardFile file(path_);
  Poll(&file);
  std::vector<learn::RewardLine> lines;
  EXPECT_FALSE(file.Poll(now_, &lines, &problem_));
  EXPECT_FALSE(file.found());
  Append("");
  Poll(&file);
  EXPECT_TRUE(file.found());
}

TEST_F(RewardFileTest, AFileThatComesLaterIsReadFromItsBeginning) {
  RewardFile file(path_);
  EXPECT_TRUE(Poll(&file).empty());
  Append("allreduce,4096,1,8,1.0\n");
  EXPECT_EQ(Poll(&file).size(), 1u);
}

TEST_F(RewardFileTest, FollowsTruncationAndRotation) {
  Append("");
  RewardFile file(path_);
  Poll(&file);
  Append("allreduce,4096,1,8,1.0\nallreduce,4096,1,8,2.0\n");
  EXPECT_EQ(Poll(&file).size(), 2u);
  std::ofstream(path_, std::ios::trunc) << "allreduce,4096,1,8,3.0\n";
  EXPECT_EQ(Poll(&file).size(), 1u);
  Append("allreduce,4096,1,8,4.0\n");
  std::filesystem::rename(path_, path_ + ".1");
  Append("allreduce,4096,1,8,5.0\n");
  EXPECT_EQ(Poll(&file).size(), 1u);  // the rest of the old one
  const auto lines = Poll(&file);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_DOUBLE_EQ(lines[0].seconds, 0.005);
}

TEST_F(RewardFileTest, GarbageIsCountedAndSaidNotOften) {
  Append("");
  RewardFile file(path_);
  Poll(&file);
  Append("what is this\nallreduce,4096,1,8,1.0\n");
  EXPECT_EQ(Poll(&file).size(), 1u);
  EXPECT_NE(problem_.find("1 lines"), std::string::npos) << problem_;
  Append("again\n");
  Poll(&file);
  EXPECT_EQ(problem_, "");
}

TEST_F(RewardFileTest, LinksAndOtherThingsThanFilesAreRefusedOnce) {
  std::filesystem::create_symlink("/etc/hostname", path_);
  RewardFile link(path_);
  Poll(&link);
  EXPECT_NE(problem_.find("symbolic link"), std::string::npos) << problem_;
  Poll(&link);
  EXPECT_EQ(problem_, "");
  RewardFile folder(folder_);
  Poll(&folder);
  EXPECT_NE(problem_.find("not a regular file"), std::string::npos) << problem_;
}

TEST_F(RewardFileTest, WhatIsLearnedIsMergedIntoThePolicyFileWithItsEvidence) {
  const std::string policy = folder_ + "/learned.conf";
  LearnedContext context;
  context.band = 20;
  context.best = {kTree, kSimple, 2};
  context.arms = {{{}, 1, 1, 1, 2e-3, 40, false},
                  {context.best, 0.8, 0.75, 0.85, 1.6e-3, 30, false}};
  ASSERT_TRUE(SaveLearned(policy, Library::kNccl, {1, 8}, {context}).ok());
  context.band = 21;
  context.best = {};
  ASSERT_TRUE(SaveLearned(policy, Library::kNccl, {1, 8}, {context}).ok());
  context.band = 19;
  context.best = {kRing, kLl, 0};
  ASSERT_TRUE(SaveLearned(policy, Library::kNccl, {2, 16}, {context}).ok());
  std::ifstream file(policy);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto read = policy::ParseStrictly(text, policy, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read.value().rules.size(), 2u);
  const policy::Rule& kept = read.value().rules[1];
  EXPECT_EQ(kept.min_bytes, (1u << 19) + 1);
  EXPECT_EQ(kept.max_bytes, 1u << 20);
  EXPECT_EQ(kept.config, (Config{kTree, kSimple, 2}));
  EXPECT_EQ(kept.ranks, 8);
  EXPECT_NE(kept.remark.find("1.250 x as fast as the default (1.176 to 1.333)"), std::string::npos)
      << kept.remark;
}

TEST_F(RewardFileTest, ALearnedFileThatCannotBeReadIsLeftAlone) {
  const std::string policy = folder_ + "/learned.conf";
  std::ofstream(policy) << "allreduce,1,2,rng,ll,-1,-1,-1\n";
  LearnedContext context;
  context.best = {kTree, kSimple, 2};
  EXPECT_FALSE(SaveLearned(policy, Library::kNccl, {1, 8}, {context}).ok());
  std::ifstream file(policy);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, "allreduce,1,2,rng,ll,-1,-1,-1\n");
}

}  // namespace
}  // namespace diapason::plugin
