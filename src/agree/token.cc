#include "agree/token.h"

#include "base/text.h"

namespace diapason::agree {
namespace {

constexpr int kMostTurns = 64;

std::string TurnKey(uint64_t turn) { return Format("token.{}", turn); }

}  // namespace

Token::Token(CellStore* store, std::string me) : store_(store), me_(std::move(me)) {}

Result<bool> Token::TryTake() {
  if (held_) return true;
  for (int i = 0; i < kMostTurns; ++i) {
    ASSIGN_OR_RETURN(const std::string holder, store_->Propose(TurnKey(turn_), me_));
    if (holder == me_) {
      held_ = true;
      return true;
    }
    ASSIGN_OR_RETURN(const std::optional<std::string> end, store_->Read(TurnKey(turn_) + ".end"));
    if (!end) return false;
    ++turn_;
  }
  return false;
}

Status Token::Release(Deadline deadline) {
  if (!held_) return {};
  RETURN_IF_ERROR(store_->Propose(TurnKey(turn_) + ".end", me_, deadline));
  held_ = false;
  ++turn_;
  return {};
}

}  // namespace diapason::agree
