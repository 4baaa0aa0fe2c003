#include "agree/orders.h"

#include <gtest/gtest.h>

#include "agree/stores.h"
#include "agree/testing.h"

namespace diapason::agree {
namespace {

class OrdersTest : public testing::Test {
 protected:
  std::unique_ptr<CellStore> Open() {
    StoreOptions options;
    options.job = "orders";
    auto store = OpenShmStore(options, {folder_.path(), uint64_t{4} << 20});
    EXPECT_TRUE(store.ok()) << store.status().message();
    return std::move(store).value();
  }
  TemporaryFolder folder_;
};

TEST_F(OrdersTest, TheLastOneCounts) {
  const auto giver = Open();
  const auto reader = Open();
  OrderLog given(giver.get());
  OrderLog read(reader.get());
  ASSERT_TRUE(read.Look(1).ok());
  EXPECT_EQ(read.number(), 0u);
  EXPECT_EQ(read.text(), "");
  ASSERT_TRUE(given.Give("one").ok());
  ASSERT_TRUE(given.Give("two").ok());
  ASSERT_TRUE(read.Look(2).ok());
  EXPECT_EQ(read.number(), 2u);
  EXPECT_EQ(read.text(), "two");
  ASSERT_TRUE(given.Give("three").ok());
  ASSERT_TRUE(read.Look(2.001).ok());
  EXPECT_EQ(read.text(), "two") << "looks are a few milliseconds apart";
  ASSERT_TRUE(read.Look(2.1).ok());
  EXPECT_EQ(read.text(), "three");
}

TEST_F(OrdersTest, AProcessThatComesLateCatchesUp) {
  const auto store = Open();
  OrderLog given(store.get());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(given.Give("order " + std::to_string(i)).ok());
  OrderLog late(store.get());
  for (double now = 1; now < 2; now += 0.1) ASSERT_TRUE(late.Look(now).ok());
  EXPECT_EQ(late.number(), 100u);
  EXPECT_EQ(late.text(), "order 99");
}

TEST_F(OrdersTest, TwoProgramsCannotGiveOrders) {
  const auto store = Open();
  OrderLog one(store.get());
  OrderLog two(store.get());
  ASSERT_TRUE(one.Give("mine").ok());
  EXPECT_FALSE(two.Give("yours").ok());
}

}  // namespace
}  // namespace diapason::agree
