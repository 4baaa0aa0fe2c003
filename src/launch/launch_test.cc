#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "launch/processes.h"
#include "launch/rank_environment.h"
#include "launch/rank_output.h"

namespace diapason::launch {
namespace {

std::string Prefixed(const std::vector<std::string>& pieces) {
  LinePrefixer lines("[2] ");
  std::string text;
  for (const std::string& piece : pieces) lines.Add(piece, &text);
  lines.Finish(&text);
  return text;
}

TEST(LinePrefixer, PutsThePrefixBeforeEveryLine) {
  EXPECT_EQ(Prefixed({"a\nb\n"}), "[2] a\n[2] b\n");
  EXPECT_EQ(Prefixed({"a", "", "b\n", "\n"}), "[2] ab\n[2] \n");
  EXPECT_EQ(Prefixed({}), "");
  EXPECT_EQ(Prefixed({std::string("\0\r", 2)}), std::string("[2] \0\r\n", 7));
}

TEST(LinePrefixer, ShowsALineOnlyWhenItIsWhole) {
  LinePrefixer lines("> ");
  std::string text;
  lines.Add("half", &text);
  EXPECT_EQ(text, "");
  lines.Add(" and half\nrest", &text);
  EXPECT_EQ(text, "> half and half\n");
  lines.Finish(&text);
  EXPECT_EQ(text, "> half and half\n> rest\n");
}

TEST(LinePrefixer, CutsLongLinesWithoutLosingAnything) {
  constexpr size_t kLimit = LinePrefixer::kLongestLine;
  EXPECT_EQ(Prefixed({std::string(kLimit, 'x') + "\n"}), "[2] " + std::string(kLimit, 'x') + "\n");
  EXPECT_EQ(Prefixed({std::string(kLimit, 'x'), "y\n"}),
            "[2] " + std::string(kLimit, 'x') + "\n[2] y\n");
  // Not inside a character of three bytes.
  const std::string start(kLimit - 1, 'x');
  EXPECT_EQ(Prefixed({start + "\xE2\x82\xAC\n"}), "[2] " + start + "\n[2] \xE2\x82\xAC\n");
  // Bytes that are no text are cut anywhere.
  EXPECT_EQ(Prefixed({std::string(kLimit + 1, '\x80')}),
            "[2] " + std::string(kLimit, '\x80') + "\n[2] \x80\n");
}

TEST(Sink, KeepsWhatItsReaderDoesNotTake) {
  Result<Pipe> made = MakePipe();
  ASSERT_TRUE(made.ok());
  Pipe pipe = std::move(made).value();
  Sink sink(pipe.write.get());
  const std::string text(3 * Sink::kFull / 2, 'x');
  sink.Add(text);
  EXPECT_TRUE(sink.full());
  sink.Flush();
  EXPECT_TRUE(sink.pending());
  size_t got = 0;
  std::vector<char> buffer(1 << 16);
  while (got < text.size()) {
    const ssize_t size = ::read(pipe.read.get(), buffer.data(), buffer.size());
    ASSERT_GT(size, 0);
    got += static_cast<size_t>(size);
    sink.Flush();
  }
  EXPECT_EQ(got, text.size());
  EXPECT_FALSE(sink.pending());
  EXPECT_EQ(::fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(Sink, DropsEverythingWhenItsReaderIsGone) {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGPIPE, &ignore, &before), 0);
  Result<Pipe> made = MakePipe();
  ASSERT_TRUE(made.ok());
  Pipe pipe = std::move(made).value();
  Sink sink(pipe.write.get());
  pipe.read.Close();
  sink.Add("text");
  sink.Flush();
  EXPECT_EQ(sink.error(), EPIPE);
  sink.Add("more");
  EXPECT_FALSE(sink.pending());
  ::sigaction(SIGPIPE, &before, nullptr);
}

TEST(SaysPlaceInJob, KnowsLaunchersAndLeavesParametersAlone) {
  for (const char* name :
       {"RANK", "MASTER_PORT", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", "PMI2_X", "PMIX_NAMESPACE",
        "SLURM_PROCID", "SLURM_STEPID", "TORCHELASTIC_RUN_ID", "FLUX_TASK_RANK", "PALS_RANKID"}) {
    EXPECT_TRUE(SaysPlaceInJob(name)) << name;
  }
  for (const char* name : {"RANKS", "PATH", "OMPI_MCA_btl", "PMIX_MCA_gds", "SLURM_JOB_ID",
                           "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "MASTER"}) {
    EXPECT_FALSE(SaysPlaceInJob(name)) << name;
  }
}

TEST(RankEnvironment, SetsOursOverWhatIsInherited) {
  const MapEnvironment inherited({{"RANK", "9"}, {"PMI_RANK", "9"}, {"A", "1"}, {"B", "2"}});
  const std::vector<std::string> expected = {"A=1",
                                             "B=4=4",
                                             "LOCAL_RANK=3",
                                             "LOCAL_WORLD_SIZE=4",
                                             "MASTER_ADDR=localhost",
                                             "MASTER_PORT=5",
                                             "NEW=",
                                             "OMP_NUM_THREADS=6",
                                             "RANK=3",
                                             "WORLD_SIZE=4"};
  EXPECT_EQ(RankEnvironment(inherited, {4, 5, 6}, 3, {"B=3", "B=4=4", "NEW="}), expected);
}

TEST(RankEnvironment, RanksOfSeveralHostsAreNumberedByHost) {
  LocalJobInfo info;
  info.ranks = 4;
  info.nodes = 3;
  info.node_rank = 2;
  info.master = "node0";
  const std::vector<std::string> variables = RankEnvironment(MapEnvironment({}), info, 1, {});
  for (const char* expected :
       {"RANK=9", "LOCAL_RANK=1", "WORLD_SIZE=12", "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=node0"}) {
    EXPECT_NE(std::find(variables.begin(), variables.end(), expected), variables.end()) << expected;
  }
}

TEST(CompleteShared, SaysWhatIsMissing) {
  LocalJobInfo info;
  info.nodes = 2;
  info.node_rank = 1;
  info.master = "";
  const auto missing = [&](std::map<std::string, std::string> variables, int port) {
    LocalJobInfo tried = info;
    return CompleteShared(MapEnvironment(std::move(variables)), port, &tried).message();
  };
  EXPECT_NE(missing({}, 1).find("--master"), std::string::npos);
  EXPECT_NE(missing({{"MASTER_ADDR", "node0"}}, 0).find("--port"), std::string::npos);
  EXPECT_NE(missing({{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "x"}}, 0).find("MASTER_PORT is 'x'"),
            std::string::npos);
  EXPECT_NE(missing({{"MASTER_ADDR", "node0"}}, 1).find("DIAPASON_SECRET_FILE"), std::string::npos);
  const MapEnvironment all({{"MASTER_ADDR", "node0"},
                            {"MASTER_PORT", "29500"},
                            {"DIAPASON_SECRET_FILE", "/shared/secret"}});
  ASSERT_TRUE(CompleteShared(all, 0, &info).ok());
  EXPECT_EQ(info.master, "node0");
  EXPECT_EQ(info.port, 29500);
  EXPECT_EQ(info.secret_file, "/shared/secret");
}

TEST(CheckAssignment, WantsANameThatIsNotOurs) {
  EXPECT_TRUE(CheckAssignment("A=").ok());
  EXPECT_TRUE(CheckAssignment("OMP_NUM_THREADS=2").ok());
  for (const char* text : {"", "A", "=", "=A", "RANK=0", "MASTER_PORT=1"}) {
    EXPECT_FALSE(CheckAssignment(text).ok()) << text;
  }
}

TEST(SignalName, NamesSignals) {
  EXPECT_EQ(SignalName(SIGKILL), "SIGKILL");
  EXPECT_EQ(SignalName(40), "signal 40");
}

}  // namespace
}  // namespace diapason::launch
