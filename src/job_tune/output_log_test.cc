#include "job_tune/output_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/temporary_file.h"
#include "base/text.h"

namespace diapason::job_tune {
namespace {

std::string ReadAll(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(OutputLogTest, TheBeginningAndTheEnd) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  for (const size_t length : {1, 7, 64, 1000}) {
    OutputLog log(64);
    ASSERT_TRUE(log.Open(path).ok());
    std::string all;
    for (int i = 0; i < 300; ++i) all += Format("line {}\n", i);
    for (size_t at = 0; at < all.size(); at += length) {
      log.Add(std::string_view(all).substr(at, length));
      EXPECT_LE(std::filesystem::file_size(path), 4 * 64u + 60);
    }
    log.Finish();
    EXPECT_EQ(ReadAll(path),
              all.substr(0, 64) +
                  Format("\n[diapason: {} bytes are left out here]\n", all.size() - 128) +
                  all.substr(all.size() - 64));
    EXPECT_EQ(log.left_out(), all.size() - 128);
    EXPECT_EQ(log.Tail(2), "line 298\nline 299");
  }
}

TEST(OutputLogTest, ShortOutputIsWhole) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  OutputLog log(64);
  ASSERT_TRUE(log.Open(path).ok());
  EXPECT_EQ(log.Tail(3), "");
  log.Add("before\n");
  log.Note("a line of ours");
  EXPECT_EQ(log.Tail(3), "");
  log.Add("a\x1b[2Jb\nno line end");
  log.Finish();
  EXPECT_EQ(ReadAll(path), "before\n[diapason: a line of ours]\na\x1b[2Jb\nno line end");
  EXPECT_EQ(log.Tail(3), "a\\x1b[2Jb\nno line end");
  EXPECT_FALSE(OutputLog().Open(path + "/below").ok());
}

TEST(OutputLogTest, AFullDiskEndsNothing) {
  OutputLog log(64);
  ASSERT_TRUE(log.Open("/dev/full").ok());
  log.Add("some");
  log.Add("more");
  log.Finish();
  EXPECT_NE(log.status().message().find("not complete"), std::string::npos);
  EXPECT_EQ(log.Tail(1), "somemore");
}

}  // namespace
}  // namespace diapason::job_tune
