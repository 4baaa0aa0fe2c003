#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diapason {

// The severity of a finding; determines the exit status and the order of output.
enum class Severity : uint8_t {
  kFine = 0,     // checked, no problem; shown as part of a checklist
  kNote = 1,     // for information; no action needed
  kWarning = 2,  // reduces speed or robustness, or does not have the intended effect
  kError = 3,    // will fail, hang or give wrong results, or certainly does not do what it says
};
std::string_view SeverityName(Severity severity);  // "ok", "note", "warning", "error"

// The result type of all advice components: one sentence, its evidence, and what to do. Every
// finding has evidence.
struct Finding {
  std::string id;  // stable, for scripts: "env.unknown-name", "gpu.throttled"
  Severity severity = Severity::kNote;
  std::string title;                  // one sentence, no full stop
  std::vector<std::string> evidence;  // "file:line: text", "/sys/...: value"; at most a few
  std::string action;                 // what to do, in the imperative; "" if there is nothing to do
};

// The highest severity; kFine for none.
Severity Worst(const std::vector<Finding>& findings);
// Highest severity first; stable.
void SortBySeverity(std::vector<Finding>* findings);

}  // namespace diapason
