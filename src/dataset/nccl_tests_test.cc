#include "dataset/nccl_tests.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace diapason::dataset {
namespace {

std::string Fixture(const std::string& name) {
  return ReadFile(DIAPASON_SOURCE_DIR "/tests/data/nccl-tests/" + name, 1 << 24).value();
}

TEST(NcclTestsTest, AnOrdinaryLog) {
  const std::vector<LogTest> tests = ParseTestLog(Fixture("a100_8gpu_allreduce.txt"));
  ASSERT_EQ(tests.size(), 1u);
  const LogTest& test = tests[0];
  EXPECT_EQ(test.program, "all_reduce_perf");
  EXPECT_EQ(test.tool, "nccl-tests 2.17.9");
  EXPECT_EQ(test.library, "nccl");
  EXPECT_EQ(test.version, "2.29.3");
  EXPECT_EQ(test.iterations, 20);
  EXPECT_EQ(test.ends, 1);
  ASSERT_EQ(test.devices.size(), 8u);
  EXPECT_EQ(test.devices[7].rank, 7);
  EXPECT_EQ(test.devices[7].host, "modal");
  EXPECT_EQ(test.devices[7].gpu, "NVIDIA A100-SXM4-40GB");
  ASSERT_EQ(test.rows.size(), 25u);
  const LogRow& last = test.rows.back();
  EXPECT_EQ(last.bytes, 134217728u);
  EXPECT_EQ(last.type, "float");
  EXPECT_EQ(last.reduce, "sum");
  EXPECT_DOUBLE_EQ(last.out_of_place.seconds, 1402.03e-6);
  EXPECT_DOUBLE_EQ(last.in_place.seconds, 1396.33e-6);
  EXPECT_NEAR(last.in_place.coarse, 0.005 / 1396.33, 1e-12);
  EXPECT_EQ(last.in_place.wrong, 0);
}

TEST(NcclTestsTest, TheVersionLineOfTheLibrary) {
  EXPECT_EQ(ParseTestLog(Fixture("l40s_4gpu_ring.txt"))[0].version, "2.29.2");
  const std::vector<LogTest> tests = ParseTestLog(
      "RCCL version : 2.27.7-HEAD:0123abc\n# nThread 1 nGpus 1 iters: 20 agg iters: 3\n");
  ASSERT_EQ(tests.size(), 1u);
  EXPECT_EQ(tests[0].library, "rccl");
  EXPECT_EQ(tests[0].version, "2.27.7");
  EXPECT_EQ(tests[0].iterations, 60);
  EXPECT_EQ(
      ParseTestLog("# nccl-tests version 2.13 nccl-headers=2708 nccl-library=2708")[0].version,
      "2.7.8");
}

TEST(NcclTestsTest, SeveralTestsAndOneThatFailed) {
  const std::vector<LogTest> both = ParseTestLog(Fixture("h100_pair_001_006.log"));
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].program, "alltoall_perf");
  EXPECT_EQ(both[1].program, "sendrecv_perf");
  EXPECT_EQ(both[1].rows.size(), 10u);
  EXPECT_EQ(both[1].rows[0].in_place.wrong, -1);  // N/A
  const std::vector<LogTest> failed = ParseTestLog(Fixture("h100_pair_002_008.log"));
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[0].ends, 1);
  EXPECT_EQ(failed[1].ends, 0);
  EXPECT_TRUE(failed[1].rows.empty());
  EXPECT_EQ(failed[1].devices.size(), 2u);
}

TEST(NcclTestsTest, ProgramsThatRanAlone) {
  const std::vector<LogTest> tests = ParseTestLog(Fixture("eight_independent_1gpu_runs.out"));
  ASSERT_EQ(tests.size(), 1u);
  EXPECT_EQ(tests[0].starts, 8);
  EXPECT_EQ(tests[0].ends, 8);
  EXPECT_EQ(tests[0].devices.size(), 8u);
  EXPECT_EQ(tests[0].rows.size(), 72u);
  EXPECT_EQ(tests[0].bad_rows, 0);
}

TEST(NcclTestsTest, OlderLogsNameNothing) {
  const std::vector<LogTest> tests = ParseTestLog(Fixture("sirius/alltoall_output.dat"));
  ASSERT_EQ(tests.size(), 1u);
  EXPECT_EQ(tests[0].program, "");
  EXPECT_EQ(tests[0].version, "");
  EXPECT_EQ(tests[0].rows.size(), 29u);
}

constexpr char kHead[] =
    "# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20\n"
    "#  Rank  0 Pid 1 on h device  0 [0x07] Tesla V100\n"
    "#  Rank  1 Pid 1 on h device  1 [0x08] Tesla V100\n";

TEST(NcclTestsTest, ColumnsComeByTheirTitles) {
  const std::string text = std::string(kHead) +
                           "#                        out-of-place           in-place\n"
                           "#  size  count  type  root  time  algbw  busbw  error  time  algbw  "
                           "busbw  error\n"
                           "  1024  256  float  3  10.00  0.10  0.10  1e-07  20.00  0.05  0.05  "
                           "N/A\n";
  const std::vector<LogTest> tests = ParseTestLog(text);
  ASSERT_EQ(tests.size(), 1u);
  ASSERT_EQ(tests[0].rows.size(), 1u);
  EXPECT_EQ(tests[0].rows[0].root, 3);
  EXPECT_EQ(tests[0].rows[0].reduce, "");
  EXPECT_EQ(tests[0].rows[0].out_of_place.wrong, -1);
  EXPECT_DOUBLE_EQ(tests[0].rows[0].in_place.seconds, 20e-6);
}

std::vector<LogTest> Rows(const std::string& rows) {
  return ParseTestLog(std::string(kHead) +
                      "#  out-of-place  in-place\n"
                      "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  "
                      "busbw  #wrong\n" +
                      rows);
}

TEST(NcclTestsTest, ARowThatWasCutGivesItsWholeHalf) {
  const LogTest half = Rows("8 2 float sum -1 17.31 0.00 0.00 0 17.0")[0];
  ASSERT_EQ(half.rows.size(), 1u);
  EXPECT_TRUE(half.rows[0].out_of_place.there);
  EXPECT_FALSE(half.rows[0].in_place.there);
  EXPECT_EQ(half.cut_rows, 1);
  // The last word may have lost digits: no value is complete here.
  const LogTest none = Rows("8 2 float sum -1 17.31 0.00 0.00 0")[0];
  EXPECT_TRUE(none.rows.empty());
  EXPECT_EQ(none.cut_rows, 1);
}

TEST(NcclTestsTest, RowsThatCannotBeAreLeftOut) {
  const char* rest = " 0.00 0.00 0 17.0 0.00 0.00 0\n";
  for (const std::string row : {"8 2 float sum -1 nan", "8 2 float sum -1 -3.0",
                                "8 2 float sum -1 0.00", "8 2 float sum -1 1e999"}) {
    // The half that can be read is kept, and the row is counted.
    const LogTest test = Rows(row + rest)[0];
    EXPECT_EQ(test.bad_rows, 1) << row;
    ASSERT_EQ(test.rows.size(), 1U) << row;
    EXPECT_FALSE(test.rows[0].out_of_place.there) << row;
    EXPECT_DOUBLE_EQ(test.rows[0].in_place.seconds, 17.0e-6) << row;
  }
  for (const std::string row :
       {"8 2 float sum -7 17.0", "99999999999999999999 2 float sum -1 1.0",
        "9999999999999999999 2 float sum -1 1.0", "8 2 float sum -1 17.0 9"}) {
    const LogTest test = Rows(row + rest)[0];
    EXPECT_TRUE(test.rows.empty()) << row;
  }
  EXPECT_EQ(Rows("8 2 float sum -1 nan 0.00 0.00 0 1.0 0.0 0.0 0\n")[0].bad_rows, 1);
  EXPECT_EQ(Rows("8 2 float sum -1 1.0 0.00 0.00 7 1.0 0.0 0.0 0\n")[0].rows[0].out_of_place.wrong,
            7);
}

TEST(NcclTestsTest, LineEndsTagsAndGarbage) {
  const std::string row = "8 2 float sum -1 17.31 0.00 0.00 0 17.06 0.00 0.00 0";
  EXPECT_EQ(Rows(row + "\r\n")[0].rows.size(), 1u);
  EXPECT_EQ(Rows(row)[0].rows.size(), 1u);
  EXPECT_EQ(Rows("[1,0]<stdout>:   " + row + "\n")[0].rows.size(), 1u);
  EXPECT_EQ(Rows("0:   " + row + "\n")[0].rows.size(), 1u);
  EXPECT_EQ(Rows(std::string(1 << 20, '7') + "\n" + row)[0].rows.size(), 1u);
  EXPECT_EQ(Rows(std::string(1 << 16, ' ') + "1 2\n" + row)[0].rows.size(), 1u);
  EXPECT_EQ(Rows("\x01\x02\xff\xfe 1 2 3\n" + row)[0].rows.size(), 1u);
  EXPECT_TRUE(ParseTestLog("").empty());
  EXPECT_FALSE(IsTestLog("hello"));
  EXPECT_EQ(ParseTestLog("8 2 float sum -1 1 1 1 0 1 1 1 0\n")[0].bad_rows, 1);
}

TEST(NcclTestsTest, TitlesThatRepeatThemselves) {
  const std::vector<LogTest> tests =
      ParseTestLog(std::string(kHead) +
                   "# size time busbw algbw type redop root size time time busbw type size size\n"
                   "8 2 float\n8 2 float 1 1 1 1 1 1 1 1 1 1 1\n");
  ASSERT_EQ(tests.size(), 1u);
  EXPECT_LE(tests[0].rows.size(), 1u);
}

TEST(NcclTestsTest, TheReasonOfAFailure) {
  const LogTest test = Rows("host: Test NCCL failure common.cu:1000 'unhandled cuda error'\n")[0];
  EXPECT_NE(test.failure.find("unhandled cuda error"), std::string::npos);
  EXPECT_EQ(test.ends, 0);
}

}  // namespace
}  // namespace diapason::dataset
