#include "launch/launcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace diapason::launch {
namespace {

TEST(LauncherTest, TheCauseOfAFailedStartNamesTheHost) {
  const std::string mpirun =
      "ssh: connect to host box3 port 22: No route to host\r\n"
      "--------------------------------------------------------------------------\n"
      "ORTE was unable to reliably start one or more daemons.\n"
      "This usually is caused by:\n\n"
      "* not finding the required libraries and/or binaries on\n"
      "  one or more nodes. Please check your PATH and LD_LIBRARY_PATH\n"
      "ssh: connect to host box3 port 22: No route to host\n";
  EXPECT_EQ(CauseOfFailure(mpirun), "ssh: connect to host box3 port 22: No route to host");
  EXPECT_EQ(CauseOfFailure("Connection to box3 closed by remote host.\n  HNP daemon   : x\n"
                           "  Remote daemon: [[1,0],2] on node box3\n"),
            "Connection to box3 closed by remote host.\nRemote daemon: [[1,0],2] on node box3");
  EXPECT_EQ(CauseOfFailure("srun: error: Node failure on box3"),
            "srun: error: Node failure on box3");
  EXPECT_EQ(CauseOfFailure("a rank says something\n\n"), "");
  EXPECT_EQ(CauseOfFailure(""), "");
  std::string many;
  for (int i = 0; i < 1000; ++i)
    many += "ssh: " + std::to_string(i) + std::string(10000, 'x') + "\n";
  EXPECT_LE(CauseOfFailure(many).size(), 8 * 401U);
}

TEST(LauncherTest, BuildsWhatEachLauncherWants) {
  Launcher launcher;
  launcher.self = "/bin/diapason";
  launcher.ranks = 4;
  EXPECT_EQ(CommandFor(launcher, {"prog", "-x"}, {{"A", "1"}}).words,
            (std::vector<std::string>{"/bin/diapason", "@launch", "4", "--env", "A=1", "--", "prog",
                                      "-x"}));
  launcher.kind = Launcher::Kind::kMpirun;
  launcher.nodes = 2;
  launcher.host_file = "hosts";
  const LaunchCommand mpirun = CommandFor(launcher, {"prog"}, {{"A", "1"}});
  EXPECT_EQ(mpirun.words,
            (std::vector<std::string>{"mpirun", "-n", "4", "--hostfile", "hosts", "--map-by",
                                      "ppr:2:node", "-x", "A", "-x", "DIAPASON_SECRET", "prog"}));
  // The secret is named among the words, and stands in the environment alone.
  ASSERT_EQ(mpirun.environment.size(), 2U);
  EXPECT_EQ(mpirun.environment[0], (std::pair<std::string, std::string>{"A", "1"}));
  EXPECT_EQ(mpirun.environment[1].first, "DIAPASON_SECRET");
  EXPECT_EQ(mpirun.environment[1].second.size(), 43U);
  EXPECT_NE(mpirun.environment[1].second,
            CommandFor(launcher, {"prog"}, {}).environment.back().second);
  // The file of the library that was chosen here is that of all hosts.
  setenv("DIAPASON_NCCL_LIBRARY", "/env/libnccl.so.2", 1);
  const std::vector<std::string> words = CommandFor(launcher, {"prog"}, {}).words;
  EXPECT_EQ(std::vector<std::string>(words.end() - 3, words.end()),
            (std::vector<std::string>{"-x", "DIAPASON_NCCL_LIBRARY", "prog"}));
  unsetenv("DIAPASON_NCCL_LIBRARY");
  // Ranks on several hosts have to be told where the first is.
  launcher.first_host = "n1";
  EXPECT_EQ(CommandFor(launcher, {"prog"}, {}).environment.front(),
            (std::pair<std::string, std::string>{"MASTER_ADDR", "n1"}));
  launcher.first_host.clear();
  launcher.kind = Launcher::Kind::kSrun;
  EXPECT_EQ(CommandFor(launcher, {"prog"}, {}).words,
            (std::vector<std::string>{"srun", "-n", "4", "-N", "2", "--input=0", "--export=ALL",
                                      "prog"}));
  EXPECT_EQ(CommandFor(launcher, {"prog"}, {}).environment.back().first, "DIAPASON_SECRET");
  EXPECT_FALSE(ParseLauncher("mpirum").ok());
  EXPECT_FALSE(ParseAssignments("A").ok());
  EXPECT_FALSE(ParseAssignments("=1").ok());
  EXPECT_EQ(ParseAssignments(" A=1  B=2=3 ").value().size(), 2U);
}

}  // namespace

// As Open MPI 4.1 does it: rank 0 is beside mpirun where the host file allows it.
TEST(LauncherTest, HostOfTheFirstRank) {
  const std::vector<std::string> hosts = {"n1", "n2", "10.0.0.3", "n4.site"};
  EXPECT_EQ(HostOfFirstRank(hosts, "login", {"127.0.0.1", "10.0.0.9"}), "n1");
  EXPECT_EQ(HostOfFirstRank(hosts, "n2", {}), "n2");
  EXPECT_EQ(HostOfFirstRank(hosts, "n2.site", {}), "n2");
  EXPECT_EQ(HostOfFirstRank(hosts, "n3", {"127.0.0.1", "10.0.0.3"}), "10.0.0.3");
  EXPECT_EQ(HostOfFirstRank(hosts, "n4.other", {}), "n1");
  EXPECT_EQ(HostOfFirstRank({"n1", "localhost"}, "n7", {}), "n7");
  const std::vector<std::string> own = OwnAddresses();
  EXPECT_NE(std::find(own.begin(), own.end(), "127.0.0.1"), own.end());
}

}  // namespace diapason::launch
