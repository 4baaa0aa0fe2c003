#include "base/root_fs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_file.h"

namespace diapason {
namespace {

namespace fs = std::filesystem;

class TreeTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_ + "/sys/cpu"); }
  void Write(const std::string& path, const std::string& text) {
    std::ofstream(root_ + path) << text;
  }
  const TemporaryFolder temporary_;
  const std::string root_ = temporary_.path();
};

TEST_F(TreeTest, ReadsBelowItsRootOnly) {
  Write("/sys/speed", "400000\n");
  const RootFs tree(root_ + "/");
  EXPECT_EQ(tree.Read("/sys/speed"), "400000");
  EXPECT_EQ(tree.ReadNumber("/sys/speed"), 400000);
  EXPECT_FALSE(tree.Read("/proc/self/status"));
  EXPECT_FALSE(tree.live());
  EXPECT_TRUE(RootFs("/").live());
  EXPECT_EQ(tree.Place("/sys/speed"), root_ + "/sys/speed");
}

TEST_F(TreeTest, LinksStayBelowTheRoot) {
  Write("/sys/speed", "400000");
  fs::create_symlink("/sys/speed", root_ + "/absolute");
  fs::create_symlink("../../../../../../sys/speed", root_ + "/sys/upwards");
  fs::create_symlink("/proc", root_ + "/proc");
  const RootFs tree(root_);
  EXPECT_EQ(tree.Read("/absolute"), "400000");
  EXPECT_EQ(tree.Read("/sys/upwards"), "400000");
  EXPECT_FALSE(tree.Read("/proc/version"));
  EXPECT_FALSE(tree.Exists("/proc/version"));
  EXPECT_FALSE(tree.IsFolder("/proc/self"));
}

TEST_F(TreeTest, WhatIsNoSmallFileIsNotThere) {
  Write("/sys/large", std::string(2000, 'x'));
  Write("/sys/words", "no number");
  ASSERT_EQ(mkfifo((root_ + "/sys/pipe").c_str(), 0600), 0);
  const RootFs tree(root_);
  EXPECT_FALSE(tree.Read("/sys/large", 1999));
  EXPECT_EQ(tree.Read("/sys/large", 2000)->size(), 2000u);
  EXPECT_FALSE(tree.ReadNumber("/sys/words"));
  EXPECT_FALSE(tree.Read("/sys/pipe"));
  EXPECT_FALSE(tree.Read("/sys"));
  EXPECT_TRUE(tree.List("/nowhere").empty());
}

TEST_F(TreeTest, ListsAsPeopleCount) {
  for (const char* name : {"cpu10", "cpu2", "cpu1", "online"}) {
    Write(std::string("/sys/cpu/") + name, "");
  }
  fs::create_symlink("../cpu", root_ + "/sys/cpu/self");
  const RootFs tree(root_);
  EXPECT_EQ(tree.List("/sys/cpu"),
            (std::vector<std::string>{"cpu1", "cpu2", "cpu10", "online", "self"}));
  EXPECT_EQ(tree.Link("/sys/cpu/self"), "../cpu");
  EXPECT_TRUE(tree.IsFolder("/sys/cpu/self"));
  EXPECT_FALSE(tree.IsFolder("/sys/cpu/cpu1"));
}

TEST(CpuListTest, ReadsWhatTheKernelWrites) {
  EXPECT_EQ(ParseCpuList("0-3,8,10-11"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(CpuListText({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_TRUE(ParseCpuList("").empty());
  EXPECT_EQ(ParseCpuList("x,2-1,3"), (std::vector<int>{3}));
  EXPECT_LE(ParseCpuList("0-18446744073709551615").size(), 65536u);
  EXPECT_EQ(CpuListText({}), "");
}

}  // namespace
}  // namespace diapason
