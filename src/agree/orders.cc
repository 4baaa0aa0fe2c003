#include "agree/orders.h"

#include "base/text.h"

namespace diapason::agree {
namespace {

constexpr int kMostOrders = 64;  // cells in one look
constexpr double kBetweenLooks = 0.005;

std::string OrderKey(uint64_t number) { return Format("order.{}", number); }

}  // namespace

Status OrderLog::Look(double now) {
  if (now < next_look_) return {};
  next_look_ = now + kBetweenLooks;
  for (int i = 0; i < kMostOrders; ++i) {
    ASSIGN_OR_RETURN(std::optional<std::string> cell, store_->Read(OrderKey(number_ + 1)));
    if (!cell) break;
    ++number_;
    text_ = *std::move(cell);
  }
  return {};
}

Status OrderLog::Give(const std::string& text) {
  ASSIGN_OR_RETURN(const std::string stands, store_->Propose(OrderKey(number_ + 1), text));
  if (stands != text) return Unavailable("another program gives orders to this job");
  ++number_;
  text_ = stands;
  return {};
}

}  // namespace diapason::agree
