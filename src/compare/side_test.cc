#include "compare/side.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "compare/comparison.h"

namespace diapason::compare {
namespace {

namespace fs = std::filesystem;

class SideTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        ("side_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  static std::string Log(double us) {
    return "# nThread 1 nGpus 1 minBytes 1024 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: "
           "20 agg iters: 1 validation: 1 graph: 0\n"
           "# Collective test starting: all_reduce_perf\n"
           "#  Rank  0 Group  0 Pid 1 on n1 device  0 [0000:01:00] NVIDIA H100\n"
           "#  Rank  1 Group  0 Pid 2 on n1 device  1 [0000:02:00] NVIDIA H100\n"
           "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
           "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
           "        1024           256     float     sum      -1    " +
           std::to_string(us) + "    0.10    0.10      0\n# Avg bus bandwidth    : 0.1\n";
  }
  static std::string Dump(int rank, double us) {
    return "{\"header\":{\"id\":\"0x1\",\"rank\":" + std::to_string(rank) +
           ",\"n_ranks\":2,\"nnodes\":1},\"metadata\":{\"inspector_output_format_version\":"
           "\"v4.2\"},\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":1,"
           "\"coll_msg_size_bytes\":8192,\"coll_exec_time_us\":" +
           std::to_string(us) + ",\"coll_algo\":\"RING\",\"coll_proto\":\"LL\"}}\n";
  }
  fs::path folder_;
};

TEST_F(SideTest, EveryFileOfAFolderIsALaunch) {
  Write("a.log", Log(10));
  Write("b.log", Log(11));
  Write("notes.txt", "not a measurement\n");
  const Result<Side> side = ReadSide({folder_.string()});
  ASSERT_TRUE(side.ok()) << side.status().message();
  EXPECT_EQ(side.value().launches.size(), 2u);
  ASSERT_EQ(side.value().calls.size(), 1u);
  EXPECT_EQ(side.value().calls.begin()->second.figures.size(), 2u);
  EXPECT_NE(side.value().notes.back().find("1 file without measurements passed over: notes.txt"),
            std::string::npos);
}

TEST_F(SideTest, OneLogOnEachSideCannotTell) {
  const Result<Side> before = ReadSide({Write("a.log", Log(10))});
  const Result<Side> after = ReadSide({Write("b.log", Log(30))});
  ASSERT_TRUE(before.ok() && after.ok());
  const Comparison result = Compare(before.value(), after.value(), {0.05, 0.05});
  ASSERT_EQ(result.calls.size(), 1u);
  EXPECT_EQ(result.calls[0].verdict, Verdict::kCannotTell);
  EXPECT_EQ(result.calls[0].why, "one value on each side: no spread is known");
  EXPECT_EQ(result.Failing(), 0u);
}

TEST_F(SideTest, DumpsOfOneFolderAreOneLaunch) {
  Write("one/n1-pid1.log", Dump(0, 10));
  Write("one/n1-pid2.log", Dump(1, 12));
  Write("two/n1-pid3.log", Dump(0, 11));
  Write("two/n1-pid4.log", Dump(1, 10));
  const Result<Side> side = ReadSide({folder_.string()});
  ASSERT_TRUE(side.ok()) << side.status().message();
  EXPECT_EQ(side.value().launches.size(), 2u);
  const CallOfSide& call = side.value().calls.begin()->second;
  ASSERT_EQ(call.figures.size(), 2u);
  EXPECT_NEAR(call.figures[0].most, 12e-6, 1e-12);
  EXPECT_NEAR(call.figures[1].most, 11e-6, 1e-12);
  EXPECT_TRUE(call.ran.contains("ring/ll"));
}

TEST_F(SideTest, TheSameFileTwiceCountsOnce) {
  const std::string path = Write("a.log", Log(10));
  const Result<Side> side = ReadSide({path, path});
  ASSERT_TRUE(side.ok());
  EXPECT_EQ(side.value().launches.size(), 1u);
  EXPECT_NE(side.value().notes.back().find("is there twice"), std::string::npos);
}

TEST_F(SideTest, WhatCannotBeReadIsAnErrorThatNamesIt) {
  EXPECT_NE(ReadSide({(folder_ / "none").string()}).status().message().find("no such file"),
            std::string::npos);
  EXPECT_FALSE(ReadSide({Write("x.txt", "hello\n")}).ok());
  EXPECT_NE(ReadSide({folder_.string()}).status().message().find("no time of any call"),
            std::string::npos);
}

}  // namespace
}  // namespace diapason::compare
