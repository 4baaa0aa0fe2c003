#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doctor/facts.h"

namespace diapason::doctor {

// One line of the readiness checklist of a machine.
struct ChecklistItem {
  enum class State : uint8_t { kOk, kNotOk, kCannotTell, kNotApplicable };
  std::string id;
  std::string text;
  State state = State::kCannotTell;
  std::string because;  // what decided
};
std::string_view StateName(ChecklistItem::State state);  // "ok", "not ok", "cannot tell", ...

std::vector<ChecklistItem> MakeChecklist(const CheckInputs& facts);

}  // namespace diapason::doctor
