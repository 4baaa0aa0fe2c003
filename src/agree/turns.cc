#include "agree/turns.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::agree {
namespace {

constexpr int kMostRead = 64;  // cells in one look
constexpr double kLooksPerTurn = 20;
constexpr double kLongestPause = 0.5;  // seconds between two looks

std::string Key(uint64_t turn) { return Format("turn.{}", turn); }

}  // namespace

void Turns::Begin(double now) {
  ++number_;
  since_ = now;
}

Status Turns::Look(double now) {
  if (since_ == 0) since_ = now;
  if (now < next_look_) return {};
  next_look_ = now + std::min(seconds_ / kLooksPerTurn, kLongestPause);
  for (int i = 0; i < kMostRead; ++i) {
    ASSIGN_OR_RETURN(const std::optional<std::string> cell, store_->Read(Key(number_ + 1)));
    if (!cell) break;
    Begin(now);
  }
  if (now - since_ < seconds_) return {};
  RETURN_IF_ERROR(store_->Propose(Key(number_ + 1), "begun"));
  Begin(now);
  return {};
}

}  // namespace diapason::agree
