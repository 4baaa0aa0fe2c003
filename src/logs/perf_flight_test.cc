// Tables of tests, and dumps of the flight recorder.
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

std::string Entry(int sequence, const std::string& operation, const std::string& sizes,
                  const std::string& state) {
  return Format(
      "{{\"record_id\":{},\"pg_id\":3,\"process_group\":[\"7\",\"dp\"],"
      "\"collective_seq_id\":{},\"p2p_seq_id\":0,\"op_id\":1,\"profiling_name\":\"nccl:{}"
      "\",\"input_sizes\":[{}],\"input_dtypes\":[\"Float\"],\"state\":\"{}\","
      "\"is_p2p\":false,\"frames\":[{{\"name\":\"step\",\"filename\":\"train.py\","
      "\"line\":88}},{{\"name\":\"main\",\"filename\":\"a.py\",\"line\":1}}]}}",
      sequence, sequence, operation, sizes, state);
}
std::string Dump(const std::string& entries, int enqueued) {
  return Format(
      "{{\"version\":\"2.10\",\"pg_config\":{{\"7\":{{\"name\":\"7\",\"desc\":\"dp\","
      "\"ranks\":\"[0, 1, 2]\"}}}},\"pg_status\":{{\"3\":{{\"last_enqueued_collective\":\"{}"
      "\",\"last_started_collective\":\"4\",\"last_completed_collective\":\"4\"}}}},"
      "\"entries\":[{}]}}",
      enqueued, entries);
}

TEST(FlightRecorder, WhoIsMissing) {
  LogFacts facts;
  const std::string done = Entry(4, "all_reduce", "[64]", "completed");
  ASSERT_TRUE(ReadLogText(Dump(done + "," + Entry(5, "all_reduce", "[64]", "started"), 5),
                          "nccl_trace_rank_0.json", &facts)
                  .ok());
  ASSERT_TRUE(ReadLogText(Dump(done, 4), "nccl_trace_rank_1.json", &facts).ok());
  EXPECT_EQ(facts.flight.files, 2U);
  EXPECT_EQ(facts.flight.entries, 3U);
  ASSERT_EQ(facts.flight.ranks.size(), 2U);
  EXPECT_EQ(facts.flight.ranks[0].first_open, 5);
  EXPECT_EQ(facts.flight.ranks[1].last_enqueued, 4);
  const std::vector<Finding> findings = Diagnose(facts);
  const Finding* hang = Find(findings, "hang.flight");
  ASSERT_NE(hang, nullptr);
  EXPECT_TRUE(Contains(hang->title, "Collective 5 of group 7 (dp)")) << hang->title;
  EXPECT_TRUE(Contains(hang->title, "entered by rank 0 and not by rank 1")) << hang->title;
  EXPECT_TRUE(Contains(hang->title, "no dump of rank 2")) << hang->title;
  EXPECT_TRUE(Contains(hang->evidence[0], "train.py:88 step")) << hang->evidence[0];
  EXPECT_TRUE(Contains(hang->action, "rank 1 first")) << hang->action;
}

TEST(FlightRecorder, WhoCalledSomethingElse) {
  LogFacts facts;
  ASSERT_TRUE(ReadLogText(Dump(Entry(5, "all_reduce", "[64]", "started"), 5), "r0", &facts).ok());
  ASSERT_TRUE(ReadLogText(Dump(Entry(5, "all_reduce", "[65]", "started"), 5), "r1", &facts).ok());
  ASSERT_TRUE(ReadLogText(Dump(Entry(6, "all_to_all", "[1]", "started"), 6), "r0", &facts).ok());
  ASSERT_TRUE(ReadLogText(Dump(Entry(6, "all_to_all", "[9]", "started"), 6), "r1", &facts).ok());
  ASSERT_EQ(facts.flight.disagreements.size(), 1U);
  EXPECT_EQ(facts.flight.disagreements[0].sequence, 5);
  EXPECT_EQ(facts.flight.disagreements[0].calls[0], "all_reduce [64] Float");
  EXPECT_EQ(facts.flight.disagreements[0].calls[1], "all_reduce [65] Float");
}

TEST(FlightRecorder, BrokenAndHostileDumps) {
  LogFacts facts;
  const std::string whole = Dump(Entry(5, "all_reduce", "[64]", "started"), 5);
  // Truncated: an error, but the existing part has been read.
  EXPECT_FALSE(ReadLogText(whole.substr(0, whole.size() - 20), "r0", &facts).ok());
  EXPECT_EQ(facts.flight.ranks.size(), 1U);
  const Status deep = ReadLogText("{\"entries\":" + std::string(100000, '['), "deep", &facts);
  ASSERT_FALSE(deep.ok());
  EXPECT_TRUE(Contains(deep.message(), "deeper than 64")) << deep.message();
  // A string of a megabyte is cut; the rest of the dump is read.
  std::string text = whole;
  text.replace(text.find("all_reduce"), 10, std::string(1 << 20, 'a') + "\\\"\\u00e4");
  EXPECT_TRUE(ReadLogText(text, "r1", &facts).ok());
}

TEST(FlightRecorder, RanksFromNames) {
  EXPECT_EQ(RankInName("/tmp/nccl_trace_rank_12.json"), 12);
  EXPECT_EQ(RankInName("trace_7"), 7);
  EXPECT_EQ(RankInName("2024/dump.json"), -1);
}

}  // namespace
}  // namespace diapason::logs
