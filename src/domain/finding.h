#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diapason {

// How much a finding matters. The order is that of the exit statuses and of what is printed first.
enum class Severity : uint8_t {
  kFine = 0,     // looked at, and all right; shown as part of a checklist
  kNote = 1,     // worth knowing; nothing has to be done
  kWarning = 2,  // costs speed or robustness, or has not the effect somebody wanted
  kError = 3,    // will fail, hang or give wrong results, or surely does not do what it says
};
std::string_view SeverityName(Severity severity);  // "ok", "note", "warning", "error"

// What every adviser here hands out: one sentence that says what is the case, what proves it, and
// what to do. A finding without evidence is an opinion; there are none.
struct Finding {
  std::string id;  // stable, for scripts: "env.unknown-name", "gpu.throttled"
  Severity severity = Severity::kNote;
  std::string title;                  // one sentence, no full stop
  std::vector<std::string> evidence;  // "file:line: text", "/sys/...: value"; at most a few
  std::string action;                 // what to do, as an order; "" where there is nothing to do
};

// The worst of them; kFine for none.
Severity Worst(const std::vector<Finding>& findings);
// Worst first; equals keep their order.
void SortBySeverity(std::vector<Finding>* findings);

}  // namespace diapason
