// What a recorder promises: nothing that could not be written is lost, and whoever is killed loses
// half a second at most.
#include "dataset/recorder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/temporary_file.h"

namespace diapason::dataset {
namespace {

class RecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<SampleStore>> store =
        SampleStore::Open(folder_ + "/store.db", SampleStore::Access::kWrite);
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
    run_.id = "run";
    run_.source = "sweep";
  }

  static Sample Measured(int round) {
    Sample sample;
    sample.point.collective = "allreduce";
    sample.point.bytes = 1024;
    sample.round = round;
    sample.seconds = 1e-5;
    return sample;
  }
  size_t Written() {
    const Result<StoreContents> contents = store_->Read();
    return contents.ok() ? contents.value().records.size() : 0;
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  std::unique_ptr<SampleStore> store_;
  dataset::SampleRun run_;
};

TEST_F(RecorderTest, WhatCouldNotBeWrittenIsWrittenLater) {
  Recorder recorder(store_.get(), run_.id);
  ASSERT_TRUE(recorder.Add(Measured(0)).ok());
  EXPECT_FALSE(recorder.Flush().ok());  // there is no such run yet
  ASSERT_TRUE(store_->BeginRun(run_).ok());
  ASSERT_TRUE(recorder.Flush().ok());
  EXPECT_EQ(Written(), 1u);
}

TEST_F(RecorderTest, AFewSamplesAreWrittenAfterAWhile) {
  ASSERT_TRUE(store_->BeginRun(run_).ok());
  Recorder recorder(store_.get(), run_.id);
  // Fewer than a batch, and none of them asks for it.
  for (int round = 0; round < 40 && Written() == 0; ++round) {
    ASSERT_TRUE(recorder.Add(Measured(round)).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_GT(Written(), 0u);
}

}  // namespace
}  // namespace diapason::dataset
