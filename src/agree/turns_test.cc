#include "agree/turns.h"

#include <gtest/gtest.h>

#include <string>

#include "agree/stores.h"
#include "agree/testing.h"

namespace diapason::agree {
namespace {

class TurnsTest : public testing::Test {
 protected:
  std::unique_ptr<CellStore> Open() {
    StoreOptions options;
    options.job = "turns";
    auto store = OpenShmStore(options, {folder_.path(), uint64_t{4} << 20});
    EXPECT_TRUE(store.ok()) << store.status().message();
    return std::move(store).value();
  }
  TemporaryFolder folder_;
};

TEST_F(TurnsTest, DefaultPolicyPolicyDefault) {
  const auto store = Open();
  Turns turns(store.get(), 10);
  std::string seen;
  for (double now = 1; now < 90; now += 1) {
    ASSERT_TRUE(turns.Look(now).ok());
    const uint64_t number = turns.number();
    if (seen.size() == number) seen += turns.is_policy() ? 'p' : 'd';
  }
  EXPECT_EQ(seen, "dppddppdd");
}

// Two processes whose clocks differ: the first one that finds it old begins the next turn for both.
TEST_F(TurnsTest, AllProcessesSeeTheSameTurn) {
  const auto store = Open();
  const auto other = Open();
  Turns one(store.get(), 10);
  Turns two(other.get(), 10);
  ASSERT_TRUE(one.Look(100).ok());
  ASSERT_TRUE(two.Look(5000).ok());
  ASSERT_TRUE(one.Look(105).ok());
  EXPECT_EQ(one.number(), 0u);
  ASSERT_TRUE(two.Look(5011).ok());
  EXPECT_EQ(two.number(), 1u);
  ASSERT_TRUE(one.Look(106).ok());
  EXPECT_EQ(one.number(), 1u);
  // It lasts as long for the process that has only been told of it.
  ASSERT_TRUE(one.Look(111).ok());
  EXPECT_EQ(one.number(), 1u);
  ASSERT_TRUE(one.Look(117).ok());
  EXPECT_EQ(one.number(), 2u);
}

TEST_F(TurnsTest, AProcessThatComesLateCatchesUp) {
  const auto store = Open();
  Turns first(store.get(), 1);
  for (double now = 1; now < 100; now += 1.5) ASSERT_TRUE(first.Look(now).ok());
  ASSERT_GT(first.number(), 60u);
  Turns late(store.get(), 1000);
  for (double now = 1; now < 3; now += 0.6) ASSERT_TRUE(late.Look(now).ok());
  EXPECT_EQ(late.number(), first.number());
}

}  // namespace
}  // namespace diapason::agree
