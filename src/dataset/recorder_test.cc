#include "dataset/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace diapason::dataset {
namespace {

class RecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "recorder_" + std::to_string(getpid()) + ".db";
    unlink(path_.c_str());
    auto store = SampleStore::Open(path_, SampleStore::Access::kWrite);
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
  }
  void TearDown() override { unlink(path_.c_str()); }
  void BeginRun() {
    dataset::SampleRun run;
    run.id = "r";
    run.source = "sweep";
    ASSERT_TRUE(store_->BeginRun(run).ok());
  }
  static Point PointOf(uint64_t bytes) {
    Point point;
    point.collective = "allreduce";
    point.bytes = bytes;
    point.ranks = 2;
    return point;
  }
  static Sample SampleOf(uint64_t bytes) {
    Sample sample;
    sample.point = PointOf(bytes);
    sample.seconds = 1e-6;
    return sample;
  }
  // As another process sees it.
  size_t Stored() {
    const auto other = SampleStore::Open(path_, SampleStore::Access::kRead);
    EXPECT_TRUE(other.ok());
    const auto contents = other.value()->Read();
    EXPECT_TRUE(contents.ok()) << contents.status().message();
    return contents.ok() ? contents.value().records.size() : 0;
  }
  std::vector<Unfinished> Unfinished_() {
    const auto found = store_->TakeUnfinished("r");
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? found.value() : std::vector<Unfinished>();
  }
  Recorder Make() {
    return Recorder(store_.get(), "r", [this] { return now_; });
  }

  std::string path_;
  std::unique_ptr<SampleStore> store_;
  Recorder::Clock::time_point now_{};
};

TEST_F(RecorderTest, WritesWhenHalfASecondHasPassed) {
  BeginRun();
  Recorder recorder = Make();
  ASSERT_TRUE(recorder.Add(SampleOf(1)).ok());
  now_ += std::chrono::milliseconds(499);
  ASSERT_TRUE(recorder.Add(SampleOf(2)).ok());
  EXPECT_EQ(Stored(), 0u);
  now_ += std::chrono::milliseconds(1);
  ASSERT_TRUE(recorder.Add(SampleOf(3)).ok());
  EXPECT_EQ(Stored(), 3u);
  ASSERT_TRUE(recorder.Add(SampleOf(4)).ok());
  EXPECT_EQ(Stored(), 3u) << "the half second begins again";
}

TEST_F(RecorderTest, WritesABatchThatIsFull) {
  BeginRun();
  Recorder recorder = Make();
  for (int i = 0; i < 63; ++i) ASSERT_TRUE(recorder.Add(SampleOf(1)).ok());
  EXPECT_EQ(Stored(), 0u);
  ASSERT_TRUE(recorder.Add(SampleOf(1)).ok());
  EXPECT_EQ(Stored(), 64u);
}

TEST_F(RecorderTest, ABatchThatCouldNotBeWrittenIsWrittenLater) {
  Recorder recorder = Make();
  ASSERT_TRUE(recorder.Add(SampleOf(1)).ok());
  EXPECT_FALSE(recorder.Begin(PointOf(2)).ok()) << "there is no such run yet";
  EXPECT_FALSE(recorder.Flush().ok());
  BeginRun();
  ASSERT_TRUE(recorder.Begin(PointOf(2)).ok());
  EXPECT_EQ(Stored(), 1u);
}

TEST_F(RecorderTest, EverythingIsWrittenBeforeTheNextMeasurementBegins) {
  BeginRun();
  Recorder recorder = Make();
  ASSERT_TRUE(recorder.Begin(PointOf(1)).ok());
  ASSERT_TRUE(recorder.Add(SampleOf(1)).ok());
  EXPECT_EQ(Stored(), 0u);
  ASSERT_TRUE(recorder.Begin(PointOf(2)).ok());
  EXPECT_EQ(Stored(), 1u);
}

TEST_F(RecorderTest, WhatIsBeingMeasuredIsKnownAfterADeath) {
  BeginRun();
  {
    Recorder recorder = Make();
    ASSERT_TRUE(recorder.Begin(PointOf(1)).ok());
    ASSERT_TRUE(recorder.Add(SampleOf(1)).ok());
    ASSERT_TRUE(recorder.Begin(PointOf(2)).ok());
  }  // as a process that is killed
  std::vector<Unfinished> unfinished = Unfinished_();
  ASSERT_EQ(unfinished.size(), 1u);
  EXPECT_EQ(unfinished[0].point, PointOf(2));
  EXPECT_EQ(unfinished[0].deaths, 1);
  EXPECT_EQ(Unfinished_().size(), 1u) << "still known, and counted once";
  EXPECT_EQ(Unfinished_()[0].deaths, 1);
  {
    // Others in between change nothing; the same point again is a second death.
    Recorder recorder = Make();
    ASSERT_TRUE(recorder.Begin(PointOf(3)).ok());
    ASSERT_TRUE(recorder.Add(SampleOf(3)).ok());
    ASSERT_TRUE(recorder.Begin(PointOf(2)).ok());
  }
  unfinished = Unfinished_();
  ASSERT_EQ(unfinished.size(), 1u);
  EXPECT_EQ(unfinished[0].deaths, 2);
  {
    Recorder recorder = Make();
    ASSERT_TRUE(recorder.Begin(PointOf(2)).ok());
    ASSERT_TRUE(recorder.Add(SampleOf(2)).ok());
    ASSERT_TRUE(recorder.Flush().ok());
  }
  EXPECT_TRUE(Unfinished_().empty()) << "it has ended well";
}

TEST_F(RecorderTest, ASampleTakesThePlaceOfTheMark) {
  BeginRun();
  Recorder recorder = Make();
  ASSERT_TRUE(recorder.Begin(PointOf(2)).ok());
  ASSERT_EQ(Unfinished_().size(), 1u);
  Sample crash = SampleOf(2);
  crash.seconds = std::nan("");
  crash.outcome = SampleOutcome::kCrash;
  ASSERT_TRUE(store_->Settle("r", {&crash, 1}).ok());
  EXPECT_TRUE(Unfinished_().empty());
  EXPECT_EQ(Stored(), 1u);
}

}  // namespace
}  // namespace diapason::dataset
