#pragma once

#include <string>
#include <vector>

#include "domain/finding.h"

namespace diapason::cli {

// Findings as text, worst first: the severity (in colour on a terminal), the finding, its evidence,
// then the recommended action. Findings that are fine are included only with `all`.
std::string FindingsText(const std::vector<Finding>& findings, bool all);

// Findings as a JSON list, in the order given, indented by two at depth `indent`.
std::string FindingsJson(const std::vector<Finding>& findings);

// "2 errors, 1 warning"; "no problems found".
std::string FindingsSummary(const std::vector<Finding>& findings);

// Exit status of commands that report findings: kExitFine, kExitWarnings or kExitErrors.
int ExitStatusOf(const std::vector<Finding>& findings);

}  // namespace diapason::cli
