#include "traces/inspector.h"

#include <gtest/gtest.h>

#include <string>

namespace diapason::traces {
namespace {

std::string Old(int rank, int sequence, const std::string& coll, int bytes, double us) {
  return "{\"header\":{\"id\":\"0xabc\",\"comm_name\":\"dp\",\"rank\":" + std::to_string(rank) +
         ",\"n_ranks\":2,\"nnodes\":1},\"metadata\":{\"inspector_output_format_version\":"
         "\"v4.0\",\"hostname\":\"n1\",\"dump_timestamp_us\":1700000000000000,\"pid\":7},"
         "\"coll_perf\":{\"coll\":\"" +
         coll + "\",\"coll_sn\":" + std::to_string(sequence) +
         ",\"coll_msg_size_bytes\":" + std::to_string(bytes) +
         ",\"coll_exec_time_us\":" + std::to_string(us) +
         ",\"coll_timing_source\":\"kernel_gpu\"}}\n";
}

TEST(InspectorTest, TheSlowestRankOfACallCounts) {
  InspectorImport import;
  import.Add(Old(0, 1, "AllReduce", 65536, 100) + Old(0, 2, "AllReduce", 65536, 130), "a");
  import.Add(Old(1, 1, "AllReduce", 65536, 120) + Old(1, 2, "AllReduce", 65536, 110), "b");
  const Result<dataset::Import> read = import.Finish();
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read.value().runs.size(), 1u);
  const auto& samples = read.value().runs[0].samples;
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_NEAR(samples[0].seconds, 120e-6, 1e-12);
  EXPECT_NEAR(samples[1].seconds, 130e-6, 1e-12);
  EXPECT_EQ(samples[0].point.ranks, 2);
  EXPECT_EQ(samples[0].point.collective, "allreduce");
  EXPECT_EQ(read.value().runs[0].run.machine.hosts, "n1");
  EXPECT_DOUBLE_EQ(read.value().runs[0].run.started, 1.7e9);
}

TEST(InspectorTest, ACallThatOneRankLacksIsLeftOutAndSaid) {
  InspectorImport import;
  import.Add(Old(0, 1, "AllReduce", 65536, 100) + Old(0, 2, "AllReduce", 65536, 130), "a");
  import.Add(Old(1, 1, "AllReduce", 65536, 120), "b");
  const Result<dataset::Import> read = import.Finish();
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().runs[0].samples.size(), 1u);
  EXPECT_NE(read.value().messages[0].find("1 call left out"), std::string::npos);
}

TEST(InspectorTest, SizesOfGatheringCallsAreThoseOfTheLargerBuffer) {
  const InspectorDump dump = ParseInspector(Old(0, 1, "AllGather", 8192, 10));
  ASSERT_EQ(dump.calls.size(), 1u);
  EXPECT_EQ(dump.calls[0].bytes, 16384u);
}

TEST(InspectorTest, FromFormat43OnTheFirstLineOfADumpHoldsForThoseBelow) {
  const std::string text =
      "{\"header\":{\"id\":\"0x1\",\"rank\":0,\"n_ranks\":4,\"nnodes\":2},\"metadata\":{"
      "\"inspector_output_format_version\":\"v4.3\"},\"dump_stats\":{\"coll_records\":3,"
      "\"coll_ring_drops\":5}}\n"
      "{\"coll_perf\":{\"coll\":\"ReduceScatter\",\"coll_sn\":1,\"coll_msg_size_bytes\":1024,"
      "\"coll_exec_time_us\":9.5,\"coll_algo\":\"RING\",\"coll_proto\":\"LL\","
      "\"event_trace_ts\":{\"coll_start_ts\":77}}}\n"
      "{\"coll_perf\":{\"coll\":\"ReduceScatter\",\"coll_sn\":2,\"coll_msg_s";
  ASSERT_TRUE(IsInspectorDump(text));
  const InspectorDump dump = ParseInspector(text);
  EXPECT_EQ(dump.format, "v4.3");
  ASSERT_EQ(dump.calls.size(), 1u);
  EXPECT_EQ(dump.calls[0].ranks, 4);
  EXPECT_EQ(dump.calls[0].nodes, 2);
  EXPECT_EQ(dump.calls[0].bytes, 4096u);
  EXPECT_EQ(dump.calls[0].ran, "ring/ll");
  EXPECT_EQ(dump.calls[0].start_us, 77u);
  EXPECT_EQ(dump.bad_lines, 1u);
  EXPECT_EQ(dump.first_bad_line, 3);
  EXPECT_EQ(dump.dropped, 5u);
  EXPECT_EQ(dump.missing, 2u);
}

TEST(InspectorTest, DamagedRecordsAreCountedWithTheFirstReason) {
  const InspectorDump dump = ParseInspector(
      "{\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_msg_size_bytes\":8,\"coll_exec_time_us\":1}}\n"
      "[]\n{}\n" +
      Old(0, 1, "Strange", 8, 1) + Old(0, 1, "AllReduce", 0, 1) + Old(0, 1, "AllReduce", 8, 0));
  EXPECT_TRUE(dump.calls.empty());
  EXPECT_EQ(dump.bad_lines, 6u);
  EXPECT_EQ(dump.first_bad_why, "no header says how many ranks there are");
}

TEST(InspectorTest, OtherTextsAreNoDumps) {
  EXPECT_FALSE(IsInspectorDump(""));
  EXPECT_FALSE(IsInspectorDump("{\"type\":\"journal\",\"version\":1}"));
  EXPECT_FALSE(IsInspectorDump("# nThread 1"));
}

}  // namespace
}  // namespace diapason::traces
