// Tables of tests.
#include "base/text.h"
#include "logs/logs_test_util.h"

namespace diapason::logs {
namespace {

std::string Header(int ranks, const std::string& host = "h") {
  std::string text = "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor)\n#\n";
  for (int rank = 0; rank < ranks; ++rank) {
    text += Format("#  Rank  {} Group  0 Pid  {} on {}{} device  0 [0000:1b:00] NVIDIA H100\n",
                   rank, 100 + rank, host, rank);
  }
  return text;
}
std::string Row(int size, double busbw, const std::string& wrong = "0") {
  return Format("  {}  {}  float  sum  -1  10.50  1.00  {:.2f}  {}  11.50  1.00  {:.2f}  N/A\n",
                size, size / 4, busbw, wrong, busbw);
}
const char kEnd[] = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 5.5\n#\n";

TEST(PerfTables, AreReduced) {
  const LogFacts facts = Read("# Collective test starting: all_reduce_perf\n" + Header(2) +
                              Row(8, 0.5) + Row(1024, 9.25) + kEnd);
  ASSERT_EQ(facts.perf.tests.size(), 1U);
  const PerfTest& test = facts.perf.tests[0];
  EXPECT_EQ(test.collective, "all_reduce");
  EXPECT_EQ(test.ranks, 2);
  EXPECT_EQ(test.host_count, 2);
  EXPECT_EQ(test.device, "NVIDIA H100");
  EXPECT_EQ(test.smallest, 8U);
  EXPECT_DOUBLE_EQ(test.smallest_us, 10.5);
  EXPECT_DOUBLE_EQ(test.peak, 9.25);
  EXPECT_EQ(test.peak_bytes, 1024U);
  EXPECT_DOUBLE_EQ(test.average, 5.5);
  EXPECT_TRUE(Diagnose(facts).empty());
}

TEST(PerfTables, BehindLabelsOfLaunchers) {
  const std::string plain = Header(2) + Row(8, 1) + kEnd;
  std::string text;
  for (const std::string_view line : Split(plain, '\n')) {
    text += "[1,0]<stdout>:" + std::string(line) + "\n";
  }
  const LogFacts facts = Read(text, "reduce_scatter.log");
  ASSERT_EQ(facts.perf.tests.size(), 1U);
  EXPECT_EQ(facts.perf.tests[0].rows, 1U);
  EXPECT_EQ(facts.perf.tests[0].collective, "reduce_scatter");
  EXPECT_EQ(facts.launchers, std::vector<std::string>{"mpirun"});
}

TEST(PerfTables, RowsThatTheLibraryInterrupts) {
  // nccl-tests prints a row in three pieces; at level INFO the library writes between them.
  const LogFacts facts =
      Read(Info(0, "Using network IB", "h7") + Header(2) + "  1024  256  float  sum  -1" +
           Info(0, "x", "h7") + "  10.5  1.0  2.5  0" + Info(0, "x", "h7") + Info(0, "x", "h7") +
           "  9.5  1.1  2.75  0\n" + Row(2048, 3) + kEnd);
  ASSERT_EQ(facts.perf.tests.size(), 1U);
  EXPECT_EQ(facts.perf.tests[0].rows, 2U);
  EXPECT_EQ(facts.perf.tests[0].smallest, 1024U);
  EXPECT_DOUBLE_EQ(facts.perf.tests[0].smallest_us, 9.5);
}

TEST(PerfTables, WrongValuesAreErrors) {
  const Finding finding = Shows(Header(2) + Row(8, 1) + Row(16, 1, "3") + kEnd, "perf.wrong");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_TRUE(Contains(finding.evidence[0], "job.log:6:")) << finding.evidence[0];
}

TEST(PerfTables, RunsThatAreAlone) {
  EXPECT_TRUE(Contains(Shows(Header(1) + Row(8, 0) + kEnd, "perf.alone").title, "one GPU alone"));
  const std::string start = "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1\n";
  const std::string rank = "#  Rank  0 Group  0 Pid 7 on h device  0 [0000:84:00] A100\n";
  const Finding finding =
      Shows(start + start + rank + rank + Row(8, 0) + Row(8, 0) + kEnd + kEnd, "perf.alone");
  EXPECT_TRUE(Contains(finding.title, "2 independent runs")) << finding.title;
}

TEST(PerfTables, SmallSizesHaveNoBandwidthAndAreFine) {
  EXPECT_TRUE(Diagnose(Read(Header(2) + Row(4, 0.0) + Row(8, 0.01) + kEnd)).empty());
}

TEST(PerfTables, RunsThatDidNotFinish) {
  const Finding finding =
      Shows(Header(2) + Row(8, 1) + kEnd + Header(2) + Row(8, 1), "perf.unfinished");
  EXPECT_TRUE(Contains(finding.title, "1 test began")) << finding.title;
  EXPECT_TRUE(Contains(finding.evidence[0], "job.log:9:")) << finding.evidence[0];
}

TEST(PerfTables, OneThatIsOdd) {
  LogFacts facts;
  for (int i = 0; i < 6; ++i) {
    const double average = i == 3 ? 5.1 : 13.4 + 0.01 * i;
    ASSERT_TRUE(ReadLogText(Header(2, "p" + std::to_string(i) + "-") + Row(8, 1) +
                                Format("# Avg bus bandwidth    : {:f}\n", average),
                            Format("pair{}.log", i), &facts)
                    .ok());
  }
  const std::vector<Finding> findings = Diagnose(facts);
  const Finding* odd = Find(findings, "perf.outlier");
  ASSERT_NE(odd, nullptr);
  EXPECT_TRUE(Contains(odd->title, "1 of 6 runs")) << odd->title;
  EXPECT_TRUE(Contains(odd->evidence[0], "p3-0 and p3-1 in pair3.log: 5.1 GB/s"))
      << odd->evidence[0];
}

}  // namespace
}  // namespace diapason::logs
