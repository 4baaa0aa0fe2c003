#include "domain/finding.h"

#include <algorithm>

namespace diapason {

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kFine:
      return "ok";
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "?";
}

Severity Worst(const std::vector<Finding>& findings) {
  Severity worst = Severity::kFine;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

void SortBySeverity(std::vector<Finding>* findings) {
  std::stable_sort(findings->begin(), findings->end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
}

}  // namespace diapason
