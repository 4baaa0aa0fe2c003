#include "cell_server/cell_table.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/text.h"

namespace diapason::cell_server {
namespace {

TEST(CellTable, ACellIsWrittenOnce) {
  CellTable table;
  ASSERT_TRUE(table.Apply(JobRecord("job", "nonce", 0)).ok());
  ASSERT_TRUE(table.Apply(CellRecord("job", "a", "1")).ok());
  EXPECT_FALSE(table.Apply(CellRecord("job", "a", "2")).ok());
  EXPECT_FALSE(table.Apply(CellRecord("other", "a", "2")).ok());
  EXPECT_FALSE(table.Apply(JobRecord("job", "nonce", 0)).ok());
  EXPECT_EQ(table.Find("job")->cells.find("a")->second, "1");
  EXPECT_EQ(table.Find("job")->writes, 1U);
}

TEST(CellTable, RemovedCellsFreeTheirMemoryAndStillCountAsWrites) {
  CellTable table;
  ASSERT_TRUE(table.Apply(JobRecord("job", "nonce", 0)).ok());
  const size_t empty = table.bytes();
  for (const char* key : {"c1.a", "c1.b", "c2.a"}) {
    ASSERT_TRUE(table.Apply(CellRecord("job", key, std::string(1000, 'v'))).ok());
  }
  ASSERT_TRUE(table.Apply(ForgetRecord("job", "c1.")).ok());
  EXPECT_EQ(table.Find("job")->cells.size(), 1U);
  EXPECT_EQ(table.Find("job")->writes, 3U);
  ASSERT_TRUE(table.Apply(ForgetRecord("job", "")).ok());
  EXPECT_EQ(table.bytes(), empty);
  ASSERT_TRUE(table.Apply(MemberRecord("job", 7)).ok());
  ASSERT_TRUE(table.Apply(RemoveRecord("job")).ok());
  EXPECT_EQ(table.bytes(), 0U);
  EXPECT_EQ(table.Find("job"), nullptr);
}

TEST(CellTable, ASnapshotMakesAnEqualTable) {
  CellTable table;
  for (const char* job : {"one", "two"}) {
    ASSERT_TRUE(table.Apply(JobRecord(job, std::string("nonce.") + job, 0)).ok());
    for (int i = 0; i < 20; ++i)
      ASSERT_TRUE(table.Apply(CellRecord(job, Format("k{}", i), "v")).ok());
    ASSERT_TRUE(table.Apply(MemberRecord(job, 3)).ok());
    ASSERT_TRUE(table.Apply(ForgetRecord(job, "k1")).ok());
  }
  CellTable copy;
  table.Snapshot([&](std::string_view record) { ASSERT_TRUE(copy.Apply(record).ok()); });
  EXPECT_EQ(copy.bytes(), table.bytes());
  for (const char* job : {"one", "two"}) {
    EXPECT_EQ(copy.Find(job)->nonce, table.Find(job)->nonce);
    EXPECT_EQ(copy.Find(job)->writes, 20U);
    EXPECT_EQ(copy.Find(job)->cells, table.Find(job)->cells);
    EXPECT_EQ(copy.Find(job)->members, table.Find(job)->members);
  }
}

TEST(CellTable, DamagedRecordsAreRefused) {
  std::mt19937 random(5);
  const std::vector<std::string> records = {
      JobRecord("new", "nonce", 9), CellRecord("job", "a", "value"), MemberRecord("job", 1),
      LeftRecord("job", 1),         ForgetRecord("job", "a"),        RemoveRecord("job")};
  for (int run = 0; run < 5000; ++run) {
    CellTable table;
    ASSERT_TRUE(table.Apply(JobRecord("job", "nonce", 0)).ok());
    std::string record = records[random() % records.size()];
    record.resize(random() % (record.size() + 1));
    EXPECT_FALSE(record.size() < 16 && table.Apply(record).ok());
    for (char& byte : record) {
      if (random() % 8 == 0) byte = static_cast<char>(random());
    }
    static_cast<void>(table.Apply(record).ok());
  }
}

}  // namespace
}  // namespace diapason::cell_server
