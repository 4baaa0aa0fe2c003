#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tune/tuning.h"

namespace diapason::tune {
namespace {

TEST(RecordedCallsTest, DumpsOfNcclInspectorAreWorkloads) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "n1-pid7.log";
  {
    std::ofstream file(path);
    for (int i = 1; i <= 3; ++i) {
      file << R"({"header":{"id":"0x1","rank":0,"n_ranks":4,"nnodes":1},"coll_perf":{"coll":")"
           << (i < 3 ? "AllReduce" : "AllGather") << R"(","coll_sn":)" << i
           << R"(,"coll_msg_size_bytes":65536,"coll_exec_time_us":10}})"
           << "\n";
    }
    file << R"({"header":{"id":"0x1","ra)";
  }
  const Result<RecordedCalls> read = ReadWorkload({path.string()});
  std::filesystem::remove(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  const RecordedCalls& recorded = read.value();
  ASSERT_EQ(recorded.entries.size(), 2u);
  uint64_t reduces = 0;
  uint64_t gathered = 0;
  for (const MixEntry& entry : recorded.entries) {
    if (entry.operation == Operation::kAllReduce) reduces = entry.calls;
    if (entry.operation == Operation::kAllGather) gathered = entry.bytes;
  }
  EXPECT_EQ(reduces, 2u);
  // Of all ranks together.
  EXPECT_EQ(gathered, 4u * 65536);
  EXPECT_EQ(recorded.ranks, std::vector<int64_t>{4});
  // The line that is cut.
  EXPECT_EQ(recorded.unread, 1u);
  EXPECT_EQ(recorded.left_out, 0u);
}

}  // namespace
}  // namespace diapason::tune
