#include "agree/token.h"

#include "base/text.h"

namespace diapason::agree {
namespace {

constexpr int kMostTurns = 64;

std::string TurnKey(uint64_t turn) {
  return Format("token.%llu", static_cast<unsigned long long>(turn));
}

}  // namespace

Token::Token(CellStore* store, std::string me) : store_(store), me_(std::move(me)) {}

Result<bool> Token::TryTake() {
  if (held_) return true;
  for (int i = 0; i < kMostTurns; ++i) {
    const Result<std::string> holder = store_->Propose(TurnKey(turn_), me_);
    if (!holder.ok()) return holder.status();
    if (holder.value() == me_) {
      held_ = true;
      return true;
    }
    const Result<std::optional<std::string>> end = store_->Read(TurnKey(turn_) + ".end");
    if (!end.ok()) return end.status();
    if (!end.value()) return false;
    ++turn_;
  }
  return false;
}

Status Token::Release(Deadline deadline) {
  if (!held_) return {};
  const Result<std::string> ended = store_->Propose(TurnKey(turn_) + ".end", me_, deadline);
  if (!ended.ok()) return ended.status();
  held_ = false;
  ++turn_;
  return {};
}

}  // namespace diapason::agree
