#include "cell_server/cell_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"

namespace diapason::cell_server {
namespace {

class CellLogTest : public testing::Test {
 protected:
  Result<CellLog> Open() {
    records_.clear();
    return CellLog::Open(path_, [this](std::string_view record) {
      records_.emplace_back(record);
      return Status();
    });
  }
  // Batches "a0 a1 ...", "b0 b1 ..." and so on.
  void Fill(int batches, int each) {
    Result<CellLog> log = Open();
    ASSERT_TRUE(log.ok()) << log.status().message();
    for (int batch = 0; batch < batches; ++batch) {
      for (int i = 0; i < each; ++i) log.value().Append(Record(batch, i));
      ASSERT_TRUE(log.value().Commit().ok());
    }
  }
  static std::string Record(int batch, int i) {
    return Format("{}:{}:", batch, i) + std::string(static_cast<size_t>(i * 5), '\0');
  }
  std::string Bytes() { return ReadFile(path_, size_t{1} << 30U).value(); }
  void Put(const std::string& bytes) {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file << bytes;
    file.close();
    ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/cells";
  std::vector<std::string> records_;
};

TEST_F(CellLogTest, RecordsComeBackInOrder) {
  Fill(3, 4);
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(records_.size(), 12U);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(records_[static_cast<size_t>(i)], Record(i / 4, i % 4));
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(CellLogTest, WhatWasNotCommittedIsNotThere) {
  {
    Result<CellLog> log = Open();
    log.value().Append("never");
  }
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(records_.empty());
}

// Every length that a crash may leave: whole batches, and nothing of the one that was being
// written.
TEST_F(CellLogTest, AnIncompleteLastBatchIsCutOff) {
  Fill(3, 3);
  const std::string whole = Bytes();
  Fill(1, 1);
  const std::string longer = Bytes();
  ASSERT_TRUE(longer.starts_with(whole));
  for (size_t size = whole.size(); size < longer.size(); ++size) {
    Put(longer.substr(0, size));
    ASSERT_TRUE(Open().ok()) << size;
    EXPECT_EQ(records_.size(), 9U) << size;
    EXPECT_EQ(Bytes(), whole) << size;
  }
  // Space that the file system reserved and did not write.
  Put(whole + std::string(5000, '\0'));
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_.size(), 9U);
  Fill(1, 2);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_.size(), 11U);
}

// A changed byte is never taken for a crash, unless it is in the last batch.
TEST_F(CellLogTest, DamageInTheMiddleIsRefused) {
  Fill(2, 3);
  const size_t acknowledged = Bytes().size();
  Fill(1, 3);
  const std::string whole = Bytes();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 7}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      Put(bytes);
      const bool opened = Open().ok();
      if (at < acknowledged) {
        EXPECT_FALSE(opened) << at;
      } else if (opened) {
        EXPECT_EQ(records_.size(), 6U) << at;
      }
    }
  }
}

TEST_F(CellLogTest, BatchesThatAreMissingOrDoubledAreRefused) {
  Fill(1, 1);
  const size_t first = Bytes().size();
  Fill(1, 1);
  const size_t second = Bytes().size();
  Fill(2, 1);
  const std::string whole = Bytes();
  Put(whole.substr(0, first) + whole.substr(second));
  EXPECT_FALSE(Open().ok());
  Put(whole.substr(0, second) + whole.substr(first));
  EXPECT_FALSE(Open().ok());
}

TEST_F(CellLogTest, RandomFilesNeverCrashTheReader) {
  Fill(4, 4);
  const std::string whole = Bytes();
  std::mt19937 random(7);
  for (int run = 0; run < 2000; ++run) {
    std::string bytes = whole.substr(0, random() % (whole.size() + 1));
    for (unsigned i = random() % 8; i > 0 && !bytes.empty(); --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.insert(random() % (bytes.size() + 1), random() % 64, '\xff');
    Put(bytes);
    const Result<CellLog> log = Open();
    // What is read is a beginning of what was written.
    ASSERT_LE(records_.size(), 16U);
    for (size_t i = 0; i < records_.size(); ++i) {
      ASSERT_EQ(records_[i], Record(static_cast<int>(i) / 4, static_cast<int>(i) % 4));
    }
  }
}

TEST_F(CellLogTest, OtherFilesAreRefused) {
  Put("something else entirely");
  EXPECT_FALSE(Open().ok());
  EXPECT_FALSE(Open().ok());
  std::filesystem::remove(path_);
  Fill(1, 1);
  std::filesystem::permissions(path_, std::filesystem::perms(0644));
  EXPECT_FALSE(Open().ok());
  std::filesystem::permissions(path_, std::filesystem::perms(0600));
  std::filesystem::create_symlink(path_, folder_.path() + "/link");
  EXPECT_FALSE(CellLog::Open(folder_.path() + "/link", [](auto) { return Status(); }).ok());
  EXPECT_FALSE(CellLog::Open(folder_.path() + "/no/cells", [](auto) { return Status(); }).ok());
  const Result<CellLog> one = Open();
  ASSERT_TRUE(one.ok());
  const Result<CellLog> two = Open();
  ASSERT_FALSE(two.ok());
  EXPECT_NE(two.status().message().find("another server uses it"), std::string::npos);
}

TEST_F(CellLogTest, ARewrittenFileHasOnlyTheNewRecords) {
  Fill(50, 10);
  {
    Result<CellLog> log = Open();
    const uint64_t before = log.value().size();
    ASSERT_TRUE(log.value().Rewrite([](const auto& add) { add("one"); }).ok());
    EXPECT_LT(log.value().size(), before);
    log.value().Append("two");
    ASSERT_TRUE(log.value().Commit().ok());
  }
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_, (std::vector<std::string>{"one", "two"}));
}

}  // namespace
}  // namespace diapason::cell_server
