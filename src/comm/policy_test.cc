// GroupOptions::policy: calls that name no configuration run as the policy says.
#include "policy/policy.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "base/temporary_file.h"
#include "comm/backends/sim/testing.h"
#include "comm/chooser.h"

namespace diapason::comm {
namespace {

constexpr int kRanks = 4;
constexpr size_t kCount = 1 << 18;  // 1 MiB of floats
constexpr double kNoise = 0.2;      // of the simulated cluster, and more

using Body = std::function<void(Group* group, int rank)>;

// Ranks of the simulated cluster as threads; returns each rank's status of creating the group.
std::vector<Status> OnRanks(const std::function<std::string(int rank)>& policy_of, bool choose,
                            const Body& body) {
  std::vector<Status> created(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions options = sim::SimulatedRank(rank, kRanks);
      options.choose = choose;
      options.policy = policy_of(rank);
      const Result<std::unique_ptr<Group>> group = Group::Create(options);
      created[static_cast<size_t>(rank)] = group.status();
      if (!group.ok()) return;
      body(group.value().get(), rank);
      (void)group.value()->Barrier();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return created;
}

// The duration of one all_reduce on the simulated clock, as rank 0 sees it.
double Seconds(const std::string& policy, const Config& config, bool started = false) {
  double seconds = 0;
  const std::vector<Status> created =
      OnRanks([&](int) { return policy; }, !config.IsDefault(),
              [&](Group* group, int rank) {
                std::vector<float> data(kCount, 1);
                Call call = AllReduceCall(data.data(), data.data(), kCount, DataType::kF32);
                call.config = config;
                const double begin = group->Now();
                const Status status = started ? group->Start(call).Wait() : group->Run(call);
                EXPECT_TRUE(status.ok()) << status.message();
                EXPECT_EQ(data[kCount / 2], kRanks);
                if (rank == 0) seconds = group->Now() - begin;
              });
  for (const Status& status : created) EXPECT_TRUE(status.ok()) << status.message();
  return seconds;
}

std::string Row(const std::string& row) {
  return "# diapason: version=1 library=nccl\n" + row + "\n";
}

class PolicyOfAGroup : public ::testing::Test {
 protected:
  std::string File(const std::string& text) {
    files_.push_back(std::make_unique<TemporaryFile>());
    EXPECT_TRUE(files_.back()->Create("policy", text).ok());
    return files_.back()->path();
  }
  const std::string ring_ = "allreduce,0,9999999,ring,ll,1,1,4";

 private:
  std::vector<std::unique_ptr<TemporaryFile>> files_;
};

TEST_F(PolicyOfAGroup, CallsRunAsItSays) {
  const double own = Seconds("", {});
  const double named = Seconds("", {kRing, kLl, 1});
  ASSERT_GT(named, 2 * own) << "the simulated cluster tells nothing apart";
  const std::string file = File(Row(ring_));
  EXPECT_NEAR(Seconds(file, {}), named, named * kNoise);
  EXPECT_NEAR(Seconds(file, {}, true), named, named * kNoise);
  // The policy is not asked about a call with a configuration.
  const double tree = Seconds("", {kTree, kSimple, 2});
  EXPECT_NEAR(Seconds(file, {kTree, kSimple, 2}), tree, tree * kNoise);
}

TEST_F(PolicyOfAGroup, OtherSizesAndShapesAreTheLibrarys) {
  const double own = Seconds("", {});
  EXPECT_NEAR(Seconds(File(Row("allreduce,0,1000,ring,ll,1,1,4")), {}), own, own * kNoise);
  EXPECT_NEAR(Seconds(File(Row("allreduce,0,9999999,ring,ll,1,1,8")), {}), own, own * kNoise);
  EXPECT_NEAR(Seconds(File(Row("allgather,0,9999999,ring,ll,1,1,4")), {}), own, own * kNoise);
}

TEST_F(PolicyOfAGroup, WhatTheLibraryRefusesIsLeftToIt) {
  // No such network is there.
  const double own = Seconds("", {});
  EXPECT_NEAR(Seconds(File(Row("allreduce,0,9999999,collnet_direct,simple,-1,1,4")), {}), own,
              own * kNoise);
}

TEST_F(PolicyOfAGroup, RanksWithDifferentPoliciesDoNotStart) {
  const std::string one = File(Row(ring_));
  const std::string other = File(Row("allreduce,0,9999999,tree,ll,1,1,4"));
  const std::vector<Status> created =
      OnRanks([&](int rank) { return rank == 2 ? other : one; }, false, [](Group*, int) {});
  for (const Status& status : created) EXPECT_FALSE(status.ok());
  EXPECT_NE(created[0].message().find("rank 2 has another policy"), std::string::npos)
      << created[0].message();
}

TEST_F(PolicyOfAGroup, ARankWithoutOneAmongRanksWithOneIsNamed) {
  const std::string file = File(Row(ring_));
  const std::vector<Status> created =
      OnRanks([&](int rank) { return rank == 2 ? "" : file; }, false, [](Group*, int) {});
  for (const Status& status : created) EXPECT_FALSE(status.ok());
  EXPECT_NE(created[0].message().find("rank 2 has no policy, and this one has"), std::string::npos)
      << created[0].message();
  EXPECT_NE(created[2].message().find("rank 0 has a policy, and this one none"), std::string::npos)
      << created[2].message();
}

TEST_F(PolicyOfAGroup, IfNoRankCanReadItEachSaysWhy) {
  for (const Status& status : OnRanks([](int) { return "/nowhere"; }, false, [](Group*, int) {})) {
    EXPECT_NE(status.message().find("cannot open '/nowhere'"), std::string::npos)
        << status.message();
  }
}

TEST_F(PolicyOfAGroup, WhoCannotReadItSaysWhy) {
  const std::string good = File(Row(ring_));
  const std::string bad = File(Row("allreduce,0,9999999,rign,ll,1,1,4"));
  const std::vector<Status> created =
      OnRanks([&](int rank) { return rank == 3 ? bad : good; }, false, [](Group*, int) {});
  EXPECT_NE(created[3].message().find("did you mean 'ring'"), std::string::npos)
      << created[3].message();
  EXPECT_NE(created[0].message().find("rank 3 cannot read its policy"), std::string::npos)
      << created[0].message();
}

TEST_F(PolicyOfAGroup, APolicyOfAnotherLibraryIsRefused) {
  const std::string file =
      File("# diapason: version=1 library=gloo\nallreduce,0,9,ring,blocking,-1,1,4\n");
  for (const Status& status : OnRanks([&](int) { return file; }, false, [](Group*, int) {})) {
    EXPECT_FALSE(status.ok());
  }
}

}  // namespace
}  // namespace diapason::comm
