#include "dataset/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/temporary_file.h"

namespace diapason::dataset {
namespace {

class StoreTest : public testing::Test {
 protected:
  ~StoreTest() override { ::chmod(folder_.c_str(), 0700); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::unique_ptr<SampleStore> Write(const std::string& name) {
    Result<std::unique_ptr<SampleStore>> store =
        SampleStore::Open(Path(name), SampleStore::Access::kWrite);
    EXPECT_TRUE(store.ok()) << store.status().message();
    return store.ok() ? std::move(store).value() : nullptr;
  }
  std::string OpenError(const std::string& name, SampleStore::Access access) {
    return SampleStore::Open(Path(name), access).status().message();
  }
  void Sql(const std::string& name, const char* sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(Path(name).c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

SampleRun MakeRun(const std::string& id) {
  dataset::SampleRun run;
  run.id = id;
  run.source = "sweep";
  run.origin = "diapason sweep, with a \"quote\"\nand a line";
  run.started = 1700000000.25;
  run.plan = "sizes=1K:1M";
  run.machine.library = "nccl";
  run.machine.library_version = "2.28.9";
  run.machine.gpu = "8x NVIDIA H100";
  run.machine.environment = {{"NCCL_A", "1=2"}, {"NCCL_B", "back\\slash\nline"}};
  return run;
}

Sample MakeSample(uint64_t bytes, double seconds) {
  Sample sample;
  sample.point.collective = "allreduce";
  sample.point.bytes = bytes;
  sample.point.ranks = 8;
  sample.point.algorithm = "ring";
  sample.point.protocol = "ll128";
  sample.point.channels = 4;
  sample.seconds = seconds;
  sample.coarse = 0.0123;
  sample.iterations = 20;
  sample.wrong = 0;
  sample.at = 1700000001.5;
  return sample;
}

TEST_F(StoreTest, WhatIsWrittenIsReadAgain) {
  const dataset::SampleRun run = MakeRun("r1");
  Sample hung = MakeSample(4096, std::nan(""));
  hung.outcome = SampleOutcome::kHang;
  hung.note = "no answer within 60 s";
  hung.point.environment = "NCCL_X=1";
  hung.point.segment_bytes = 1 << 20;
  const std::vector<Sample> samples = {MakeSample(1024, 1.0 / 3), MakeSample(1024, 2e-6), hung};
  {
    const std::unique_ptr<SampleStore> store = Write("s.db");
    ASSERT_TRUE(store->BeginRun(run).value());
    ASSERT_TRUE(store->Add("r1", samples).ok());
    ASSERT_TRUE(store->EndRun("r1", dataset::SampleRun::State::kDone).ok());
  }
  const std::unique_ptr<SampleStore> store =
      std::move(SampleStore::Open(Path("s.db"), SampleStore::Access::kRead)).value();
  const StoreContents contents = store->Read().value();
  ASSERT_EQ(contents.runs.size(), 1u);
  EXPECT_EQ(contents.runs[0].origin, run.origin);
  EXPECT_EQ(contents.runs[0].started, run.started);
  EXPECT_EQ(contents.runs[0].state, dataset::SampleRun::State::kDone);
  EXPECT_EQ(contents.runs[0].plan, run.plan);
  EXPECT_EQ(contents.runs[0].machine, run.machine);
  ASSERT_EQ(contents.records.size(), 3u);
  EXPECT_EQ(contents.records[0].sample.seconds, 1.0 / 3);
  EXPECT_EQ(contents.records[1].sample.seconds, 2e-6);
  EXPECT_EQ(contents.records[0].sample.coarse, 0.0123);
  EXPECT_EQ(contents.records[0].sample.point, samples[0].point);
  EXPECT_TRUE(std::isnan(contents.records[2].sample.seconds));
  EXPECT_EQ(contents.records[2].sample.outcome, SampleOutcome::kHang);
  EXPECT_EQ(contents.records[2].sample.note, hung.note);
  EXPECT_EQ(contents.records[2].sample.point, hung.point);
}

TEST_F(StoreTest, ARunIsThereOnce) {
  const std::unique_ptr<SampleStore> store = Write("s.db");
  const std::vector<Sample> samples = {MakeSample(1024, 1e-5)};
  EXPECT_TRUE(store->AddRun(MakeRun("r1"), samples).value());
  EXPECT_FALSE(store->AddRun(MakeRun("r1"), samples).value());
  EXPECT_FALSE(store->BeginRun(MakeRun("r1")).value());
  EXPECT_EQ(store->Read().value().records.size(), 1u);
}

TEST_F(StoreTest, MachinesAndPointsAreStoredOnce) {
  {
    const std::unique_ptr<SampleStore> store = Write("s.db");
    const std::vector<Sample> samples = {MakeSample(1024, 1e-5), MakeSample(2048, 1e-5),
                                         MakeSample(1024, 2e-5)};
    ASSERT_TRUE(store->AddRun(MakeRun("r1"), samples).value());
    ASSERT_TRUE(store->AddRun(MakeRun("r2"), samples).value());
  }
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(Path("s.db").c_str(), &database), SQLITE_OK);
  sqlite3_stmt* counts = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(database,
                               "SELECT (SELECT count(*) FROM machine), (SELECT count(*) FROM "
                               "point), (SELECT count(*) FROM sample)",
                               -1, &counts, nullptr),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_step(counts), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_int(counts, 0), 1);
  EXPECT_EQ(sqlite3_column_int(counts, 1), 2);
  EXPECT_EQ(sqlite3_column_int(counts, 2), 6);
  sqlite3_finalize(counts);
  sqlite3_close(database);
}

TEST_F(StoreTest, ATransactionIsWholeOrNothing) {
  const std::unique_ptr<SampleStore> store = Write("s.db");
  ASSERT_TRUE(store->BeginRun(MakeRun("r1")).value());
  Sample bad = MakeSample(1024, std::numeric_limits<double>::infinity());
  const std::vector<Sample> samples = {MakeSample(1024, 1e-5), bad};
  EXPECT_FALSE(store->Add("r1", samples).ok());
  EXPECT_FALSE(store->AddRun(MakeRun("r2"), samples).ok());
  const StoreContents contents = store->Read().value();
  EXPECT_TRUE(contents.records.empty());
  EXPECT_EQ(contents.runs.size(), 1u);
  // And the store goes on working.
  EXPECT_TRUE(store->Add("r1", std::span(samples).first(1)).ok());
}

TEST_F(StoreTest, SamplesThatCannotBeAreRefused) {
  const std::unique_ptr<SampleStore> store = Write("s.db");
  ASSERT_TRUE(store->BeginRun(MakeRun("r1")).value());
  const auto refused = [&](Sample sample) {
    return !store->Add("r1", std::span<const Sample>(&sample, 1)).ok();
  };
  EXPECT_TRUE(refused(MakeSample(1024, -1)));
  EXPECT_TRUE(refused(MakeSample(1024, std::nan(""))));  // does not say why
  EXPECT_TRUE(refused(MakeSample(uint64_t{1} << 63, 1)));
  Sample no_ranks = MakeSample(1024, 1);
  no_ranks.point.ranks = 0;
  EXPECT_TRUE(refused(no_ranks));
  Sample strange = MakeSample(1024, 1);
  strange.coarse = std::nan("");
  EXPECT_TRUE(refused(strange));
}

TEST_F(StoreTest, UnknownRunsAreAnError) {
  const std::unique_ptr<SampleStore> store = Write("s.db");
  EXPECT_EQ(store->Add("nobody", {}).code(), ErrorCode::kNotFound);
  EXPECT_EQ(store->EndRun("nobody", dataset::SampleRun::State::kDone).code(), ErrorCode::kNotFound);
}

TEST_F(StoreTest, FiltersSelect) {
  const std::unique_ptr<SampleStore> store = Write("s.db");
  Sample gather = MakeSample(1024, 1e-5);
  gather.point.collective = "allgather";
  gather.point.ranks = 2;
  Sample iteration = MakeSample(4096, 1e-2);
  iteration.point.kind = Point::Kind::kIteration;
  dataset::SampleRun other = MakeRun("r2");
  other.machine.library = "rccl";
  ASSERT_TRUE(store->AddRun(MakeRun("r1"), std::vector{MakeSample(1024, 1e-5), gather}).value());
  ASSERT_TRUE(store->AddRun(other, std::vector{iteration}).value());
  const auto count = [&](const Filter& filter) {
    return store->Read(filter).value().records.size();
  };
  EXPECT_EQ(count({}), 3u);
  EXPECT_EQ(count({.run = "r2"}), 1u);
  EXPECT_EQ(count({.collective = "allgather"}), 1u);
  EXPECT_EQ(count({.collective = "x' OR '1'='1"}), 0u);
  EXPECT_EQ(count({.library = "rccl"}), 1u);
  EXPECT_EQ(count({.ranks = 8}), 2u);
  EXPECT_EQ(count({.bytes = 1024}), 2u);
  EXPECT_EQ(count({.kind = Point::Kind::kIteration}), 1u);
  EXPECT_EQ(store->Runs().value().size(), 2u);
}

TEST_F(StoreTest, MergingTwiceAddsNothing) {
  {
    const std::unique_ptr<SampleStore> a = Write("a.db");
    ASSERT_TRUE(a->AddRun(MakeRun("r1"), std::vector{MakeSample(1, 1), MakeSample(2, 2)}).value());
    const std::unique_ptr<SampleStore> b = Write("b.db");
    ASSERT_TRUE(b->AddRun(MakeRun("r2"), std::vector{MakeSample(3, 3)}).value());
  }
  const std::unique_ptr<SampleStore> c = Write("c.db");
  EXPECT_EQ(c->Merge(Path("a.db")).value(), 2u);
  EXPECT_EQ(c->Merge(Path("b.db")).value(), 1u);
  EXPECT_EQ(c->Merge(Path("a.db")).value(), 0u);
  EXPECT_EQ(c->Merge(Path("b.db")).value(), 0u);
  EXPECT_EQ(c->Merge(Path("c.db")).value(), 0u);
  EXPECT_EQ(c->Read().value().records.size(), 3u);
}

TEST_F(StoreTest, MergingBringsWhatARunGainedMeanwhile) {
  const std::unique_ptr<SampleStore> a = Write("a.db");
  ASSERT_TRUE(a->BeginRun(MakeRun("r1")).value());
  ASSERT_TRUE(a->Add("r1", std::vector{MakeSample(1, 1), MakeSample(1, 1)}).ok());
  const std::unique_ptr<SampleStore> c = Write("c.db");
  EXPECT_EQ(c->Merge(Path("a.db")).value(), 2u);
  EXPECT_EQ(c->Runs().value()[0].state, dataset::SampleRun::State::kRunning);
  ASSERT_TRUE(a->Add("r1", std::vector{MakeSample(1, 1), MakeSample(2, 1)}).ok());
  ASSERT_TRUE(a->EndRun("r1", dataset::SampleRun::State::kDone).ok());
  EXPECT_EQ(c->Merge(Path("a.db")).value(), 2u);
  EXPECT_EQ(c->Merge(Path("a.db")).value(), 0u);
  EXPECT_EQ(c->Read().value().records.size(), 4u);
  EXPECT_EQ(c->Runs().value()[0].state, dataset::SampleRun::State::kDone);
}

TEST_F(StoreTest, OtherFilesAreRecognisedAndLeftAlone) {
  EXPECT_NE(OpenError("none.db", SampleStore::Access::kRead).find("there is no store"),
            std::string::npos);
  EXPECT_FALSE(FileExists(Path("none.db")));
  EXPECT_NE(OpenError("no/such/folder.db", SampleStore::Access::kWrite).find("no folder"),
            std::string::npos);
  std::filesystem::create_directory(Path("folder"));
  EXPECT_NE(OpenError("folder", SampleStore::Access::kWrite).find("is a directory"),
            std::string::npos);
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_NE(OpenError("pipe", SampleStore::Access::kRead).find("not a regular file"),
            std::string::npos);
  std::ofstream(Path("text")) << std::string(5000, 'x');
  EXPECT_NE(OpenError("text", SampleStore::Access::kWrite).find("not a store"), std::string::npos);
  EXPECT_EQ(ReadFile(Path("text"), 10000).value(), std::string(5000, 'x'));
  std::ofstream(Path("empty"));
  EXPECT_NE(OpenError("empty", SampleStore::Access::kRead).find("is empty"), std::string::npos);
  EXPECT_EQ(OpenError("empty", SampleStore::Access::kWrite), "");
  Sql("foreign.db", "CREATE TABLE songs(name)");
  EXPECT_NE(OpenError("foreign.db", SampleStore::Access::kWrite).find("another program"),
            std::string::npos);
}

TEST_F(StoreTest, NewerAndChangedStoresAreRefused) {
  Write("newer.db").reset();
  Sql("newer.db", "PRAGMA user_version=2");
  EXPECT_NE(OpenError("newer.db", SampleStore::Access::kRead).find("newer diapason"),
            std::string::npos);
  Write("changed.db").reset();
  Sql("changed.db", "ALTER TABLE sample ADD COLUMN mood TEXT");
  EXPECT_NE(OpenError("changed.db", SampleStore::Access::kRead).find("'sample'"),
            std::string::npos);
  Write("trigger.db").reset();
  Sql("trigger.db", "CREATE TRIGGER t AFTER INSERT ON sample BEGIN DELETE FROM sample; END");
  EXPECT_NE(OpenError("trigger.db", SampleStore::Access::kWrite).find("triggers"),
            std::string::npos);
}

TEST_F(StoreTest, ValuesThatCannotBeAreDamage) {
  {
    const std::unique_ptr<SampleStore> store = Write("s.db");
    ASSERT_TRUE(store->AddRun(MakeRun("r1"), std::vector{MakeSample(1, 1)}).value());
  }
  for (const char* sql : {"UPDATE sample SET outcome=17", "UPDATE point SET ranks=0",
                          "UPDATE sample SET seconds=-1", "UPDATE run SET state=9"}) {
    std::filesystem::copy_file(Path("s.db"), Path("t.db"),
                               std::filesystem::copy_options::overwrite_existing);
    Sql("t.db", sql);
    const std::unique_ptr<SampleStore> store =
        std::move(SampleStore::Open(Path("t.db"), SampleStore::Access::kRead)).value();
    const Status read = store->Read().status();
    EXPECT_NE(read.message().find("damaged"), std::string::npos) << sql;
  }
}

// Every page in turn is overwritten: an error or the old content, never a crash.
TEST_F(StoreTest, DamageIsFound) {
  {
    const std::unique_ptr<SampleStore> store = Write("s.db");
    std::vector<Sample> samples;
    for (int i = 1; i <= 300; ++i)
      samples.push_back(MakeSample(static_cast<uint64_t>(i), 1e-6 * i));
    ASSERT_TRUE(store->AddRun(MakeRun("r1"), samples).value());
  }
  const std::string whole = ReadFile(Path("s.db"), 1 << 24).value();
  size_t errors = 0;
  size_t pages = 0;
  for (size_t at = 0; at < whole.size(); at += 4096, ++pages) {
    std::string damaged = whole;
    for (size_t i = at + 100; i < std::min(at + 4096, whole.size()); ++i) damaged[i] = '\xa5';
    std::ofstream(Path("d.db"), std::ios::binary | std::ios::trunc) << damaged;
    const Result<std::unique_ptr<SampleStore>> store =
        SampleStore::Open(Path("d.db"), SampleStore::Access::kRead);
    const bool found = !store.ok() || !store.value()->CheckIntegrity().ok();
    errors += found ? 1 : 0;
    if (store.ok()) (void)store.value()->Read();
  }
  EXPECT_GT(pages, 5u);
  EXPECT_EQ(errors, pages);
  std::ofstream(Path("cut.db"), std::ios::binary) << whole.substr(0, whole.size() / 2);
  const Result<std::unique_ptr<SampleStore>> cut =
      SampleStore::Open(Path("cut.db"), SampleStore::Access::kRead);
  EXPECT_TRUE(!cut.ok() || !cut.value()->CheckIntegrity().ok());
}

TEST_F(StoreTest, AReadOnlyFileCanBeReadAndNotWritten) {
  Write("s.db").reset();
  ASSERT_EQ(::chmod(Path("s.db").c_str(), 0400), 0);
  if (::access(Path("s.db").c_str(), W_OK) == 0) GTEST_SKIP() << "root writes everywhere";
  EXPECT_EQ(OpenError("s.db", SampleStore::Access::kRead), "");
  EXPECT_NE(OpenError("s.db", SampleStore::Access::kWrite).find("cannot be written"),
            std::string::npos);
}

TEST_F(StoreTest, AStoreOpenForReadingDoesNotWrite) {
  Write("s.db").reset();
  const std::unique_ptr<SampleStore> store =
      std::move(SampleStore::Open(Path("s.db"), SampleStore::Access::kRead)).value();
  EXPECT_FALSE(store->BeginRun(MakeRun("r1")).ok());
  EXPECT_FALSE(store->Merge(Path("s.db")).ok());
}

TEST_F(StoreTest, StrangeNamesAreFiles) {
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  for (const std::string name : {":memory:", "a?mode=memory", "file:x"}) {
    ASSERT_TRUE(SampleStore::Open(name, SampleStore::Access::kWrite).ok()) << name;
    EXPECT_TRUE(FileExists(Path(name))) << name;
  }
  std::filesystem::current_path(before);
}

TEST(EnvironmentTest, SurvivesAnything) {
  const std::map<std::string, std::string> environment = {
      {"A", ""}, {"B", "x=y"}, {"C", "\n\\n\\"}, {"D", "\\"}};
  EXPECT_EQ(ParseEnvironmentText(EnvironmentText(environment)), environment);
  EXPECT_TRUE(ParseEnvironmentText("").empty());
}

TEST(EnvironmentTest, SecretsAreLeftOutBothWays) {
  EXPECT_EQ(EnvironmentText({{"A", "redis://u:hunter2@h"}, {"B_TOKEN", "hunter2"}}),
            "A=redis://u:***@h\nB_TOKEN=***");
  const std::map<std::string, std::string> expected = {{"A", "redis://u:***@h"},
                                                       {"B_TOKEN", "***"}};
  EXPECT_EQ(ParseEnvironmentText("A=redis://u:hunter2@h\nB_TOKEN=hunter2"), expected);
}

TEST(SampleTest, NamesAndFactors) {
  Point point;
  EXPECT_EQ(point.ConfigText(), "library default");
  point.algorithm = "ring";
  point.protocol = "simple";
  point.channels = 4;
  EXPECT_EQ(point.ConfigText(), "ring/simple, 4 channels");
  point.environment = "NCCL_X=1";
  EXPECT_EQ(point.ConfigText(), "ring/simple, 4 channels, NCCL_X=1");
  EXPECT_DOUBLE_EQ(BusFactorOf("allreduce", 8), 1.75);
  EXPECT_DOUBLE_EQ(BusFactorOf("alltoall", 8), 0.875);
  EXPECT_DOUBLE_EQ(BusFactorOf("sendrecv", 8), 1);
  EXPECT_DOUBLE_EQ(BusFactorOf("gather", 4), 0.75);
  EXPECT_NE(NewRunId(), NewRunId());
  Point other = point;
  other.algorithm = "tree";
  EXPECT_TRUE(point.SameContext(other));
  other.in_place = true;
  EXPECT_FALSE(point.SameContext(other));
}

}  // namespace
}  // namespace diapason::dataset
