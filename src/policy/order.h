#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/status.h"
#include "policy/policy.h"

namespace diapason::policy {

// What a job that is tuned from outside should run for a while (agree::OrderLog): calls that no row
// matches are left to the library.
struct Order {
  // For about how long: ranks agree on a few epochs in that time.
  std::chrono::milliseconds length{0};
  Policy rows;
};

// One word after the other: the milliseconds, and the rows as by EncodeInline.
std::string OrderText(const Order& order);
// Rejects what OrderText cannot have written.
Result<Order> ParseOrder(std::string_view text);

}  // namespace diapason::policy
