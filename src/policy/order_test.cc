#include "policy/order.h"

#include <gtest/gtest.h>

namespace diapason::policy {
namespace {

TEST(Order, ComesBackAsItWasWritten) {
  Order order;
  order.length = std::chrono::milliseconds(250);
  Rule rule;
  rule.min_bytes = 16385;
  rule.max_bytes = 32768;
  rule.config = {1, 2, 4};
  rule.ranks = 4;
  order.rows.rules.push_back(rule);
  const Result<Order> read = ParseOrder(OrderText(order));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().length, order.length);
  ASSERT_EQ(read.value().rows.rules.size(), 1u);
  EXPECT_EQ(read.value().rows.rules[0].config, rule.config);
  EXPECT_EQ(read.value().rows.rules[0].ranks, 4);
  EXPECT_EQ(read.value().rows.rules[0].max_bytes, 32768u);
}

TEST(Order, WithoutRowsEverythingIsTheLibrarys) {
  Order order;
  order.length = std::chrono::milliseconds(1);
  const Result<Order> read = ParseOrder(OrderText(order));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read.value().rows.rules.empty());
}

TEST(Order, RejectsWhatWasChanged) {
  Order order;
  order.length = std::chrono::milliseconds(100);
  const std::string text = OrderText(order);
  for (const std::string& bad :
       {std::string(), std::string("100"), std::string("x ") + text.substr(4), "0" + text.substr(3),
        "-5" + text.substr(3), "99999999999" + text.substr(3), text.substr(0, text.size() - 1),
        "100 " + std::string(1000, 'a')}) {
    EXPECT_FALSE(ParseOrder(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace diapason::policy
