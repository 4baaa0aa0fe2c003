#include "comm/launch_info.h"

#include <gtest/gtest.h>

namespace diapason::comm {
namespace {

using Variables = std::map<std::string, std::string>;

Result<LaunchInfo> Find(const Variables& variables, const GroupOptions& options = {}) {
  return FindLaunch(options, MapEnvironment(variables));
}

TEST(RankInfo, AloneWithoutALauncher) {
  const Result<LaunchInfo> launch = Find({});
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch.value().rank, 0);
  EXPECT_EQ(launch.value().size, 1);
  EXPECT_EQ(launch.value().address.host, "localhost");
  EXPECT_EQ(launch.value().address.port, 29500);
  EXPECT_EQ(launch.value().source, "no launcher");
}

TEST(RankInfo, TorchrunsVariablesWinOverOpenMpisAndSlurms) {
  const Result<LaunchInfo> launch = Find({{"RANK", "3"},
                                          {"WORLD_SIZE", "8"},
                                          {"LOCAL_RANK", "1"},
                                          {"MASTER_ADDR", "node7"},
                                          {"MASTER_PORT", "1234"},
                                          {"OMPI_COMM_WORLD_RANK", "0"},
                                          {"OMPI_COMM_WORLD_SIZE", "2"},
                                          {"SLURM_PROCID", "5"},
                                          {"SLURM_STEP_NUM_TASKS", "6"}});
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch.value().rank, 3);
  EXPECT_EQ(launch.value().size, 8);
  EXPECT_EQ(launch.value().local_rank, 1);
  EXPECT_EQ(launch.value().address.host, "node7");
  EXPECT_EQ(launch.value().address.port, 1234);
  EXPECT_EQ(launch.value().address.ports, 1);
}

TEST(RankInfo, ExplicitOptionsWinOverEverything) {
  GroupOptions options;
  options.rank = 1;
  options.size = 2;
  options.master_addr = "10.0.0.1";
  options.master_port = 77;
  const Result<LaunchInfo> launch =
      Find({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"MASTER_PORT", "1234"}}, options);
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch.value().rank, 1);
  EXPECT_EQ(launch.value().size, 2);
  EXPECT_EQ(launch.value().address.host, "10.0.0.1");
  EXPECT_EQ(launch.value().address.port, 77);
}

TEST(RankInfo, MistakesNameTheVariable) {
  const auto message = [](const Variables& variables) {
    const Result<LaunchInfo> launch = Find(variables);
    return launch.ok() ? std::string("accepted") : launch.status().message();
  };
  EXPECT_NE(message({{"RANK", "1"}}).find("WORLD_SIZE is not"), std::string::npos);
  EXPECT_NE(message({{"WORLD_SIZE", "2"}}).find("RANK is not"), std::string::npos);
  EXPECT_NE(message({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).find("RANK=2"), std::string::npos);
  EXPECT_NE(message({{"RANK", "two"}, {"WORLD_SIZE", "2"}}).find("'two'"), std::string::npos);
  EXPECT_NE(message({{"RANK", "0"}, {"WORLD_SIZE", "0"}}).find("WORLD_SIZE"), std::string::npos);
  EXPECT_NE(message({{"MASTER_PORT", "70000"}}).find("MASTER_PORT"), std::string::npos);
  GroupOptions half;
  half.rank = 1;
  EXPECT_FALSE(Find({}, half).ok());
}

TEST(RankInfo, OpenMpiOverSeveralHostsAsksForTheAddress) {
  Variables variables{{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
  const Result<LaunchInfo> lost = Find(variables);
  ASSERT_FALSE(lost.ok());
  EXPECT_NE(lost.status().message().find("MASTER_ADDR"), std::string::npos);
  variables["MASTER_ADDR"] = "node1";
  ASSERT_TRUE(Find(variables).ok());
  EXPECT_EQ(Find(variables).value().local_rank, 1);
}

TEST(RankInfo, JobsOfOneHostGetPortsOfTheirOwn) {
  Variables job{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_JOB_ID", "17"}};
  const LaunchInfo first = Find(job).value();
  job["SLURM_JOB_ID"] = "18";
  const LaunchInfo second = Find(job).value();
  EXPECT_NE(first.address.port, second.address.port);
  EXPECT_NE(first.address.token, second.address.token);
  EXPECT_GE(first.address.port, 20000);
  EXPECT_LT(first.address.port, 30000);
  job["MASTER_PORT"] = "4000";
  EXPECT_EQ(Find(job).value().address.port, 4000);
}

TEST(RankInfo, ABatchScriptIsNoRankOfAStep) {
  // sbatch sets a rank and a number of tasks too, but no other task has been started.
  const LaunchInfo launch = Find({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).value();
  EXPECT_EQ(launch.size, 1);
}

TEST(RankInfo, TorchrunKeepsItsPort) {
  const LaunchInfo launch = Find({{"RANK", "0"},
                                  {"WORLD_SIZE", "2"},
                                  {"MASTER_PORT", "29400"},
                                  {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                  {"TORCHELASTIC_RUN_ID", "a"}})
                                .value();
  EXPECT_EQ(launch.address.port, 29401);
  EXPECT_GT(launch.address.ports, 1);
  EXPECT_FALSE(launch.address.token.empty());
}

TEST(RankInfo, FirstSlurmHost) {
  EXPECT_EQ(FirstSlurmHost("n1"), "n1");
  EXPECT_EQ(FirstSlurmHost("n1,n2"), "n1");
  EXPECT_EQ(FirstSlurmHost("n[3-7,9],m1"), "n3");
  EXPECT_EQ(FirstSlurmHost("n[003-007]"), "n003");
  EXPECT_EQ(FirstSlurmHost("n[5]-ib"), "n5-ib");
  EXPECT_EQ(FirstSlurmHost("n["), "");
  EXPECT_EQ(FirstSlurmHost("n[a]"), "");
  EXPECT_EQ(FirstSlurmHost(""), "");
}

}  // namespace
}  // namespace diapason::comm
