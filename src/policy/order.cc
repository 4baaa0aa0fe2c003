#include "policy/order.h"

#include <charconv>

#include "base/text.h"
#include "policy/inline.h"

namespace diapason::policy {
namespace {

constexpr int64_t kLongestOrder = 3600000;

}  // namespace

std::string OrderText(const Order& order) {
  return Format("{} {}", order.length.count(), EncodeInline(order.rows));
}

Result<Order> ParseOrder(std::string_view text) {
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return Invalid("an order is a time and a policy");
  const std::string_view number = text.substr(0, blank);
  int64_t length = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), length);
  if (error != std::errc() || end != number.data() + number.size() || length < 1 ||
      length > kLongestOrder) {
    return Invalid(Format("an order lasts from 1 to {} ms", kLongestOrder));
  }
  Order order;
  order.length = std::chrono::milliseconds(length);
  ASSIGN_OR_RETURN(order.rows, DecodeInline(text.substr(blank + 1)));
  return order;
}

}  // namespace diapason::policy
