#include "dataset/import.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/text.h"

namespace diapason::dataset {
namespace {

std::string Fixture(const std::string& name) {
  return ReadFile(DIAPASON_SOURCE_DIR "/tests/data/" + name, 1 << 24).value();
}

Import Read(const std::string& text, const ImportOptions& options = {},
            const std::string& name = "x.log") {
  Result<Import> import = ImportText(text, name, options);
  EXPECT_TRUE(import.ok()) << import.status().message();
  return import.ok() ? std::move(import).value() : Import{};
}

std::string Error(const std::string& text, const ImportOptions& options = {},
                  const std::string& name = "x.log") {
  return ImportText(text, name, options).status().message();
}

bool Says(const Import& import, const std::string& what) {
  return Join(import.messages, "\n").find(what) != std::string::npos;
}

TEST(ImportLogTest, AnOrdinaryLog) {
  const Import import = Read(Fixture("nccl-tests/a100_8gpu_allreduce.txt"));
  EXPECT_EQ(import.format, "nccl-tests log");
  EXPECT_TRUE(import.messages.empty()) << Join(import.messages, "\n");
  ASSERT_EQ(import.runs.size(), 1u);
  const dataset::SampleRun& run = import.runs[0].run;
  EXPECT_EQ(run.state, dataset::SampleRun::State::kDone);
  EXPECT_EQ(run.machine.library, "nccl");
  EXPECT_EQ(run.machine.library_version, "2.29.3");
  EXPECT_EQ(run.machine.gpu, "8x NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(run.machine.topology, "1 node of 8 ranks");
  EXPECT_FALSE(run.machine.simulated);
  ASSERT_EQ(import.runs[0].samples.size(), 50u);
  const Sample& sample = import.runs[0].samples.back();
  EXPECT_EQ(sample.point.collective, "allreduce");
  EXPECT_EQ(sample.point.ranks, 8);
  EXPECT_EQ(sample.point.nodes, 1);
  EXPECT_EQ(sample.point.type, "f32");
  EXPECT_TRUE(sample.point.in_place);
  EXPECT_TRUE(sample.point.IsDefault());
  EXPECT_DOUBLE_EQ(sample.seconds, 1396.33e-6);
  EXPECT_NEAR(BusBandwidth(sample.point, sample.seconds), 168.21e9, 0.01e9);
}

TEST(ImportLogTest, HowItWasRunIsSaidByOptions) {
  ImportOptions options;
  options.algorithm = "RING";
  options.environment = {"NCCL_B=1", "NCCL_A=2"};
  const std::string log = Fixture("nccl-tests/l40s_4gpu_ring.txt");
  const Import forced = Read(log, options);
  EXPECT_EQ(forced.runs[0].samples[0].point.algorithm, "ring");
  EXPECT_EQ(forced.runs[0].samples[0].point.environment, "NCCL_A=2 NCCL_B=1");
  // The same file with other options is another run; with the same it is the same.
  EXPECT_NE(forced.runs[0].run.id, Read(log).runs[0].run.id);
  EXPECT_EQ(forced.runs[0].run.id, Read(log, options, "other/name.txt").runs[0].run.id);
  ImportOptions wrong;
  wrong.ranks = 8;
  EXPECT_NE(Error(log, wrong).find("shows 4 ranks"), std::string::npos);
  wrong = {};
  wrong.collective = "allgather";
  EXPECT_NE(Error(log, wrong).find("--collective says 'allgather'"), std::string::npos);
  wrong = {};
  wrong.algorithm = "rng";
  EXPECT_NE(Error(log, wrong).find("did you mean"), std::string::npos);
}

TEST(ImportLogTest, ATestThatFailedIsKeptAsSuch) {
  const Import import = Read(Fixture("nccl-tests/h100_pair_002_008.log"));
  ASSERT_EQ(import.runs.size(), 2u);
  EXPECT_EQ(import.runs[0].run.state, dataset::SampleRun::State::kDone);
  EXPECT_EQ(import.runs[0].samples[0].point.nodes, 2);
  EXPECT_EQ(import.runs[0].samples[0].point.type, "f64");
  EXPECT_EQ(import.runs[0].samples[0].point.reduce, "");
  EXPECT_EQ(import.runs[1].run.state, dataset::SampleRun::State::kInterrupted);
  EXPECT_TRUE(import.runs[1].samples.empty());
  EXPECT_NE(import.runs[0].run.id, import.runs[1].run.id);
  EXPECT_TRUE(Says(import, "printed no row"));
}

TEST(ImportLogTest, ProgramsThatRanAloneAreNoRunOfEight) {
  const Import import = Read(Fixture("nccl-tests/eight_independent_1gpu_runs.out"));
  ASSERT_EQ(import.runs.size(), 1u);
  EXPECT_TRUE(Says(import, "8 programs that each ran alone"));
  EXPECT_NE(import.runs[0].run.plan.find("independent=8"), std::string::npos);
  for (const Sample& sample : import.runs[0].samples) ASSERT_EQ(sample.point.ranks, 1);
}

TEST(ImportLogTest, TheCollectiveOfAnOlderLog) {
  const std::string log = Fixture("nccl-tests/sirius/alltoall_output.dat");
  const Import import = Read(log, {}, "sirius/alltoall_output.dat");
  EXPECT_TRUE(Says(import, "alltoall comes from the file's name"));
  EXPECT_TRUE(Says(import, "3 rows of size 0 left out"));
  EXPECT_EQ(import.runs[0].samples[0].point.nodes, 2);
  EXPECT_EQ(import.runs[0].samples[0].point.ranks, 8);
  EXPECT_EQ(import.runs[0].run.machine.gpu, "4x NVIDIA A100-SXM4-40GB");
  EXPECT_NE(Error(log, {}, "output.dat").find("say --collective"), std::string::npos);
  ImportOptions options;
  options.collective = "all_to_all";
  EXPECT_EQ(Read(log, options, "output.dat").runs[0].samples.size(), 52u);
  // Its bandwidths contradict a wrong name.
  EXPECT_TRUE(Says(Read(log, {}, "all_reduce.dat"), "do not fit 8 ranks"));
}

TEST(ImportLogTest, RcclTests) {
  const Import import = Read(Fixture("nccl-tests/mi355x_8gpu_allreduce.log"));
  EXPECT_EQ(import.format, "rccl-tests log");
  EXPECT_EQ(import.runs[0].run.machine.library, "rccl");
  EXPECT_EQ(import.runs[0].run.machine.gpu, "8x AMD Instinct MI355X");
  EXPECT_EQ(import.runs[0].samples.size(), 64u);
}

constexpr char kTitles[] = "collective,num_nodes,num_gpus,size_bytes,algo,proto,nchannels,";

TEST(ImportTableTest, TheGrid) {
  ImportOptions options;
  options.library = "rccl";
  const Import import =
      Read(Fixture("measurements/mi355x_allreduce_1n_2n.csv"), options, "grid.csv");
  EXPECT_EQ(import.rows, 3564u);
  ASSERT_EQ(import.runs.size(), 2u);
  EXPECT_TRUE(import.messages.empty()) << Join(import.messages, "\n");
  const Sample& first = import.runs[0].samples[0];
  EXPECT_TRUE(first.point.IsDefault());
  EXPECT_TRUE(first.point.in_place);
  EXPECT_EQ(first.round, 1);
  EXPECT_NEAR(BusBandwidth(first.point, first.seconds), 0.33e9, 1);
  EXPECT_NEAR(first.coarse, 0.005 / 0.33, 1e-9);
  // 1.7 stands for 1.70 in a column of hundredths.
  const Sample& short_one = import.runs[0].samples[10];
  EXPECT_NEAR(BusBandwidth(short_one.point, short_one.seconds), 1.7e9, 1);
  EXPECT_NEAR(short_one.coarse, 0.005 / 1.7, 1e-9);
}

TEST(ImportTableTest, ColumnsByName) {
  const std::string titles =
      "busbw_ip,time_ip,mood,algo,proto,nchannels,size_bytes,num_gpus,"
      "num_nodes,collective\r\n";
  const Import import =
      Read("\xef\xbb\xbf" + titles + "0.70,10.0,good,RING,LL,4,4000,8,1,all_reduce");
  EXPECT_TRUE(Says(import, "column 'mood'"));
  EXPECT_TRUE(Says(import, "--library"));
  ASSERT_EQ(import.runs[0].samples.size(), 1u);
  EXPECT_DOUBLE_EQ(import.runs[0].samples[0].seconds, 10e-6);  // the time, not the bandwidth
  EXPECT_NEAR(import.runs[0].samples[0].coarse, 0.005, 1e-12);
  EXPECT_TRUE(Says(Read(titles + "0.70,10000,x,RING,LL,4,4000,8,1,all_reduce"), "contradict"));
  EXPECT_NE(Error("collective,num_gpus,size_bytes,algo,nchannels,time_ip\n")
                .find("missing columns num_nodes, proto"),
            std::string::npos);
  EXPECT_NE(Error(std::string(kTitles) + "repeat\n").find("no column has a time"),
            std::string::npos);
}

TEST(ImportTableTest, RowsThatCannotBe) {
  const std::string titles = std::string(kTitles) + "busbw_ip\n";
  for (const std::string row :
       {"all_reduce,1,8,-4,RING,LL,4,1", "all_reduce,1,8,1e308,RING,LL,4,1",
        "all_reduce,0,8,4,RING,LL,4,1", "all_reduce,2,1,4,RING,LL,4,1",
        "all_reduce,1,99999999999999999999,4,RING,LL,4,1", "all_reduce,1,8,4,RNG,LL,4,1",
        "all_reduce,1,8,4,RING,LL,x,1", "all_reduce,1,8,4,RING,LL,-2,1",
        "nothing,1,8,4,RING,LL,4,1", "all_reduce,1,8,4,RING,LL,4", "all_reduce,1,8,4,RING,LL,4,1,1",
        "\"open"}) {
    EXPECT_NE(Error(titles + row), "") << row;
  }
  for (const std::string value : {"nan", "-1", "0.00", "inf", "1e400", "", "FAILED"}) {
    const Import import = Read(titles + "all_reduce,1,8,4,RING,LL,4," + value + "\n");
    EXPECT_TRUE(import.runs[0].samples.empty()) << value;
    EXPECT_TRUE(Says(import, "1 row left out")) << value;
  }
}

TEST(ImportTableTest, ARowOfAnotherLibraryDoesNotTakeTheOthersWithIt) {
  const std::string titles = std::string(kTitles) + "busbw_ip\n";
  const Import import = Read(titles +
                             "all_reduce,1,8,4096,RING,LL,4,1\n"
                             "all_reduce,1,8,4096,Direct,Simple,4,1\n"
                             "all_reduce,1,8,8192,TREE,LL,4,1\n");
  EXPECT_EQ(import.rows, 2U);
  ASSERT_EQ(import.runs[0].samples.size(), 2U);
  EXPECT_TRUE(Says(import, "1 row with an unknown configuration left out, the first is line 3"))
      << Join(import.messages, "\n");
  // A table of nothing else is refused, and says why.
  EXPECT_NE(Error(titles + "all_reduce,1,8,4096,Direct,Simple,4,1\n").find("line 2"),
            std::string::npos);
}

TEST(ImportTableTest, AnEmptyNumberOfChannelsIsTheLibrarysOwn) {
  const Import import = Read(std::string(kTitles) + "busbw_ip\nall_reduce,1,8,4096,RING,LL,,1\n");
  ASSERT_EQ(import.runs[0].samples.size(), 1U);
  EXPECT_EQ(import.runs[0].samples[0].point.channels, 0);
}

TEST(ImportTableTest, QuotationMarksAndBlanksAfterCommas) {
  const Import import = Read(
      "\"collective\", \"num_nodes\", \"num_gpus\", \"size_bytes\", \"algo\", \"proto\", "
      "\"nchannels\", \"time_oop\"\n"
      "\"all_reduce\", 1, \"8\", \"4096\", \"RING\", \"LL\", \"4\", \"12.5\"\n");
  ASSERT_EQ(import.runs.size(), 1U);
  ASSERT_EQ(import.runs[0].samples.size(), 1U);
  EXPECT_EQ(import.runs[0].samples[0].point.algorithm, "ring");
  EXPECT_DOUBLE_EQ(import.runs[0].samples[0].seconds, 12.5e-6);
  const Import rewards = Read("\"allreduce\", 4194304, 1, 8, \"12.34\"\n");
  EXPECT_EQ(rewards.rows, 1U);
}

TEST(ImportJsonTest, RcclTestsWritesObjects) {
  const std::string one =
      R"({"numCycle":0,"name":"AllReduce","size":4096,"type":"float","redop":"sum","inPlace":0,)"
      R"("time":12.5,"algBw":0.3,"busBw":0.5,"wrong":0,"nodes":2,"ranks":16})";
  const std::string other =
      R"({"numCycle":0,"name":"AllReduce","size":4096,"type":"float","redop":"sum","inPlace":1,)"
      R"("time":"11.5","algBw":0.3,"busBw":0.5,"wrong":"N/A","nodes":2,"ranks":16})";
  for (const std::string& text : {one + "\n" + other + "\n", "[" + one + "," + other + "]",
                                  "[\n" + one + ",\n" + other + ",\n"}) {
    const Import import = Read(text);
    EXPECT_EQ(import.format, "rccl-tests JSON");
    ASSERT_EQ(import.rows, 2U) << text;
    const std::vector<Sample>& samples = import.runs[0].samples;
    EXPECT_EQ(samples[0].point.collective, "allreduce");
    EXPECT_EQ(samples[0].point.ranks, 16);
    EXPECT_EQ(samples[0].point.nodes, 2);
    EXPECT_FALSE(samples[0].point.in_place);
    EXPECT_TRUE(samples[1].point.in_place);
    EXPECT_DOUBLE_EQ(samples[1].seconds, 11.5e-6);
    EXPECT_EQ(import.runs[0].run.machine.library, "rccl");
  }
  const Import damaged = Read(one + "\n{\"name\":\n{\"name\":\"AllReduce\"}\n");
  EXPECT_EQ(damaged.rows, 1U);
  EXPECT_TRUE(Says(damaged, "2 rows left out")) << Join(damaged.messages, "\n");
  // Ranks come from the options where the file has none.
  const std::string alone =
      R"({"name":"AllGather","size":4096,"type":"float","redop":"none","inPlace":0,"time":12.5})";
  EXPECT_NE(Error(alone).find("--ranks"), std::string::npos);
  ImportOptions options;
  options.ranks = 8;
  EXPECT_EQ(Read(alone, options).runs[0].samples[0].point.ranks, 8);
  EXPECT_NE(Error("{\"a\":1}\n"), "");
  EXPECT_NE(Error("[[[[[[[[[["), "");
}

TEST(ImportRewardsTest, SimulatedLinesStayMarked) {
  const Import import = Read(
      "allreduce,4096,1,8,1.5\n# diapason: simulated\nallreduce,4096,1,8,2.5\n"
      "# diapason: end of simulated\nallreduce,4096,1,8,3.5\n");
  ASSERT_EQ(import.runs.size(), 2U);
  EXPECT_FALSE(import.runs[0].run.machine.simulated);
  EXPECT_EQ(import.runs[0].samples.size(), 2U);
  EXPECT_TRUE(import.runs[1].run.machine.simulated);
  ASSERT_EQ(import.runs[1].samples.size(), 1U);
  EXPECT_DOUBLE_EQ(import.runs[1].samples[0].seconds, 2.5e-3);
  const Import all = Read("# diapason: simulated\nallreduce,4096,1,8,2.5\n");
  ASSERT_EQ(all.runs.size(), 1U);
  EXPECT_TRUE(all.runs[0].run.machine.simulated);
}

TEST(ImportTableTest, OptionsHaveToAgree) {
  const std::string text = std::string(kTitles) + "time_ip\nall_reduce,1,8,4,RING,LL,4,1.5\n";
  ImportOptions options;
  options.ranks = 8;
  options.collective = "allreduce";
  EXPECT_EQ(Error(text, options), "");
  options.ranks = 4;
  EXPECT_NE(Error(text, options).find("says 8 ranks, --ranks says 4"), std::string::npos);
  options.ranks = 0;
  options.collective = "allgather";
  EXPECT_NE(Error(text, options).find("says allreduce"), std::string::npos);
}

TEST(ImportTableTest, SimulatedStaysSimulated) {
  const Import import = Read(std::string(kTitles) +
                             "time_ip,simulated\nall_reduce,1,8,4,RING,LL,4,1.5,1\n"
                             "all_reduce,1,8,4,RING,LL,4,1.5,0\n");
  ASSERT_EQ(import.runs.size(), 2u);
  EXPECT_TRUE(import.runs[0].run.machine.simulated);
  EXPECT_FALSE(import.runs[1].run.machine.simulated);
}

TEST(ImportRewardsTest, CallNumbersAreAccepted) {
  const Import numbered =
      Read("allreduce,4194304,1,8,12.34,17\nallreduce,4194304,1,8,12.35,20,2\n");
  EXPECT_EQ(numbered.rows, 2u);
}

TEST(ImportRewardsTest, Lines) {
  const std::string text =
      "collType,nBytes,nNodes,nRanks,latency_ms\nallreduce,4194304,1,8,12.34\n"
      "allreduce,4194304,1,8,11.98";
  const Import import = Read(text);
  EXPECT_EQ(import.format, "reward lines");
  EXPECT_TRUE(Says(import, "whole iterations"));
  ASSERT_EQ(import.runs[0].samples.size(), 2u);
  EXPECT_EQ(import.runs[0].samples[1].round, 1);
  EXPECT_DOUBLE_EQ(import.runs[0].samples[1].seconds, 11.98e-3);
  EXPECT_EQ(import.runs[0].samples[1].point.kind, Point::Kind::kIteration);
  ImportOptions options;
  options.kind = Point::Kind::kCollective;
  EXPECT_EQ(Read(text, options).runs[0].samples[0].point.kind, Point::Kind::kCollective);
  EXPECT_NE(Error("allreduce,4194304,1,8,12.34\nallreduce,4194304,1,8,-1\n").find("line 2"),
            std::string::npos);
  EXPECT_NE(Error("allreduce,4194304,1,8,12.34\nallreduce,4194304,9,8,1\n").find("line 2"),
            std::string::npos);
}

TEST(ImportIterationsTest, NeedsToBeTold) {
  const std::string text = Fixture("iteration-times/iteration_times_auto.txt");
  EXPECT_NE(Error(text).find("--iterations"), std::string::npos);
  EXPECT_FALSE(ImportIterations(text, "x", {}).ok());
  ImportOptions options;
  options.collective = "allreduce";
  options.bytes = 4 << 20;
  options.ranks = 8;
  const Result<Import> import = ImportIterations(text, "x", options);
  ASSERT_TRUE(import.ok()) << import.status().message();
  ASSERT_EQ(import.value().runs[0].samples.size(), 50u);
  const Sample& sample = import.value().runs[0].samples[0];
  EXPECT_DOUBLE_EQ(sample.seconds, 10.139e-3);
  EXPECT_NEAR(sample.coarse, 0.0005 / 10.139, 1e-9);
  EXPECT_EQ(sample.point.kind, Point::Kind::kIteration);
  for (const std::string bad : {"1.0\nx\n", "1.0\n-2\n", "nan\n", "1e300\n", "\n\n", ""}) {
    EXPECT_FALSE(ImportIterations(bad, "x", options).ok()) << bad;
  }
}

TEST(ImportTest, NothingIsGuessed) {
  EXPECT_NE(Error("").find("is empty"), std::string::npos);
  EXPECT_NE(Error("\n \n").find("is empty"), std::string::npos);
  EXPECT_NE(Error("hello\n").find("format is not known"), std::string::npos);
  EXPECT_NE(Error(std::string("# nThread 1\n\0\n", 14)).find("binary"), std::string::npos);
  EXPECT_NE(Error("SQLite format 3").find("data merge"), std::string::npos);
  EXPECT_NE(Error("# nThread 1 nGpus 1\n").find("say --collective"), std::string::npos);
  std::string garbage;
  for (int i = 0; i < 10000; ++i) garbage += static_cast<char>(1 + i * 7919 % 255);
  EXPECT_NE(Error(garbage), "");
  EXPECT_NE(Error(std::string(1 << 20, 'x')), "");
}

TEST(ImportTest, NamesOfOthersAreShownPrintable) {
  const std::string error = ImportText("hello", "\x1b[31mred", {}).status().message();
  EXPECT_EQ(error.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace diapason::dataset
