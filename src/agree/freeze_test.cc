#include "agree/freeze.h"

#include <gtest/gtest.h>

#include "agree/stores.h"
#include "agree/testing.h"

namespace diapason::agree {
namespace {

class FreezeTest : public testing::Test {
 protected:
  void SetUp() override {
    StoreOptions options;
    options.job = "freeze";
    auto opened = OpenShmStore(options, {folder_.path(), uint64_t{1} << 20});
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    store_ = std::move(opened).value();
  }
  TemporaryFolder folder_;
  std::unique_ptr<CellStore> store_;
};

TEST_F(FreezeTest, TheLastWordCounts) {
  FreezeLog job(store_.get());
  FreezeLog tool(store_.get());
  ASSERT_TRUE(job.Look().ok());
  EXPECT_FALSE(job.frozen());
  for (const bool frozen : {true, false, true}) {
    const auto set = tool.Set(frozen);
    ASSERT_TRUE(set.ok());
    EXPECT_TRUE(set.value());
    ASSERT_TRUE(job.Look().ok());
    EXPECT_EQ(job.frozen(), frozen);
  }
}

TEST_F(FreezeTest, WhatIsSoAlreadyIsLeftAlone) {
  FreezeLog tool(store_.get());
  const auto thawed = tool.Set(false);
  ASSERT_TRUE(thawed.ok());
  EXPECT_FALSE(thawed.value());
  ASSERT_TRUE(tool.Set(true).ok());
  FreezeLog another(store_.get());
  const auto frozen = another.Set(true);
  ASSERT_TRUE(frozen.ok());
  EXPECT_FALSE(frozen.value());
}

TEST_F(FreezeTest, AWordThatNoToolWritesDoesNotFreeze) {
  ASSERT_TRUE(store_->Propose("control.0", "melt").ok());
  FreezeLog job(store_.get());
  ASSERT_TRUE(job.Look().ok());
  EXPECT_FALSE(job.frozen());
}

}  // namespace
}  // namespace diapason::agree
