#pragma once

#include "plugin/learning/learning.h"
#include "plugin/tuner/pin.h"
#include "policy/table.h"

namespace diapason::plugin {

// What decides a call: the first of pin, agreed and row that is set, and only that one is set; if
// none is, the library.
struct Choice {
  PinnedChoice::Word pin = PinnedChoice::kNone;
  const LearningContext::Ready* agreed = nullptr;
  const policy::DecisionTable::Entry* row = nullptr;
  // While the default and the policy take turns: the agreed turn, if the policy decides.
  const LearningContext::Ready* turn = nullptr;
};

// The precedence, and the only place that knows it: a pin, else what the ranks have agreed on, else
// a row of the policy, else the library. `ask_agreed` returns the agreed answer, or nullptr where
// calls of this kind are not learned; it counts the call, so a pinned call must not ask it.
template <typename AskAgreed>
inline Choice Choose(const PinnedChoice& pin, const AskAgreed& ask_agreed,
                     const policy::DecisionTable& rows, const Question& question) noexcept {
  if (const PinnedChoice::Word word = pin.Get(); word != PinnedChoice::kNone) [[unlikely]] {
    return {word, nullptr, nullptr};
  }
  if (const LearningContext::Ready* agreed = ask_agreed(); agreed != nullptr) {
    using Turn = LearningContext::Ready::Turn;
    if (agreed->turn == Turn::kNone || agreed->lost) return {PinnedChoice::kNone, agreed, nullptr};
    const policy::DecisionTable::Entry* row = rows.Find(question);
    // Without a row both turns leave the call to the library.
    if (agreed->turn == Turn::kPolicy || row == nullptr) {
      return {PinnedChoice::kNone, nullptr, row, agreed};
    }
    return {PinnedChoice::kNone, agreed, nullptr};
  }
  return {PinnedChoice::kNone, nullptr, rows.Find(question)};
}

}  // namespace diapason::plugin
