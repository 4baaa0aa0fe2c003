#include "agree/job.h"

#include <gtest/gtest.h>

#include "agree/private_folder.h"

namespace diapason::agree {
namespace {

std::string Identity(std::map<std::string, std::string> variables) {
  return JobIdentity(MapEnvironment(std::move(variables)));
}

TEST(JobIdentity, OurOwnVariableComesFirst) {
  EXPECT_EQ(Identity({}), "job");
  EXPECT_EQ(Identity({{"DIAPASON_JOB", "night-run_3.1"}, {"SLURM_JOB_ID", "5"}}), "night-run_3.1");
  EXPECT_EQ(Identity({{"DIAPASON_JOB", ""}}), "job");
}

TEST(JobIdentity, SlurmJobStepAndRestart) {
  EXPECT_EQ(Identity({{"SLURM_JOB_ID", "5"}}), "5");
  EXPECT_EQ(Identity({{"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "0"}}), "5_0");
  EXPECT_EQ(Identity({{"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "0"}, {"SLURM_RESTART_COUNT", "2"}}),
            "5_0_r2");
}

TEST(JobIdentity, TorchrunsInOneSlurmJobDiffer) {
  const std::map<std::string, std::string> slurm = {{"SLURM_JOB_ID", "5"}};
  auto one = slurm;
  one["TORCHELASTIC_RUN_ID"] = "a";
  auto two = slurm;
  two["TORCHELASTIC_RUN_ID"] = "b";
  EXPECT_EQ(Identity(one), "5_a");
  EXPECT_NE(Identity(one), Identity(two));
  // Nodes may have a step each.
  auto other_node = one;
  other_node["SLURM_STEP_ID"] = "7";
  EXPECT_EQ(Identity(one), Identity(other_node));
}

TEST(JobIdentity, TorchrunsRestartsCountOnOneNodeOnly) {
  std::map<std::string, std::string> one = {
      {"TORCHELASTIC_RUN_ID", "a"}, {"GROUP_WORLD_SIZE", "1"}, {"TORCHELASTIC_RESTART_COUNT", "1"}};
  auto again = one;
  again["TORCHELASTIC_RESTART_COUNT"] = "2";
  EXPECT_NE(Identity(one), Identity(again));
  // With several, only the node that failed counts: the numbers differ within one job.
  one["GROUP_WORLD_SIZE"] = "2";
  again["GROUP_WORLD_SIZE"] = "2";
  EXPECT_EQ(Identity(one), Identity(again));
}

TEST(JobIdentity, MpirunsOwnNodeAndTheOthersAgree) {
  const std::map<std::string, std::string> remote = {
      {"PMIX_NAMESPACE", "prterun-head-123@1"}, {"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "3"}};
  const std::map<std::string, std::string> local = {{"PMIX_NAMESPACE", "prterun-head-123@1"},
                                                    {"SLURM_JOB_ID", "5"}};
  const std::map<std::string, std::string> by_ssh = {{"PMIX_NAMESPACE", "prterun-head-123@1"}};
  EXPECT_EQ(Identity(remote), Identity(local));
  EXPECT_EQ(Identity(remote), Identity(by_ssh));
  EXPECT_EQ(Identity({{"OMPI_MCA_ess_base_jobid", "2183659521"}}), "2183659521");
  EXPECT_EQ(Identity({{"PMIX_NAMESPACE", "slurm.pmix.5.0"},
                      {"SLURM_JOB_ID", "5"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_RESTART_COUNT", "1"}}),
            "5_r1_slurm.pmix.5.0");
}

TEST(JobIdentity, OddAndLongOnesStayDifferentAndBecomePlain) {
  const std::vector<std::string> odd = {"a/b",
                                        "a b",
                                        "a-b",
                                        "../up",
                                        ".hidden",
                                        "\n\xff",
                                        std::string(300, 'x'),
                                        std::string(301, 'x'),
                                        std::string(300, '/')};
  std::vector<std::string> seen;
  for (const std::string& name : odd) {
    const std::string identity = Identity({{"DIAPASON_JOB", name}});
    EXPECT_TRUE(CheckJob(identity).ok()) << identity;
    EXPECT_LE(identity.size(), 60u);
    for (const std::string& other : seen) EXPECT_NE(identity, other);
    seen.push_back(identity);
  }
}

TEST(LauncherSpread, IsWhatTheLauncherSays) {
  const auto spread = [](std::map<std::string, std::string> variables) {
    return LauncherSpread(MapEnvironment(std::move(variables)));
  };
  EXPECT_EQ(spread({}), JobSpread::kUnknown);
  EXPECT_EQ(spread({{"LOCAL_WORLD_SIZE", "8"}, {"WORLD_SIZE", "8"}}), JobSpread::kOneHost);
  EXPECT_EQ(spread({{"LOCAL_WORLD_SIZE", "8"}, {"WORLD_SIZE", "16"}}), JobSpread::kSeveralHosts);
  EXPECT_EQ(spread({{"WORLD_SIZE", "16"}}), JobSpread::kUnknown);
  EXPECT_EQ(spread({{"LOCAL_WORLD_SIZE", "x"}, {"WORLD_SIZE", "16"}}), JobSpread::kUnknown);
  EXPECT_EQ(spread({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
            JobSpread::kSeveralHosts);
  EXPECT_EQ(spread({{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_JOB_NUM_NODES", "4"}}),
            JobSpread::kOneHost);
  EXPECT_EQ(spread({{"SLURM_JOB_NUM_NODES", "4"}}), JobSpread::kSeveralHosts);
}

}  // namespace
}  // namespace diapason::agree
