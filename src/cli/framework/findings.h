#pragma once

#include <string>
#include <vector>

#include "domain/finding.h"

namespace diapason::cli {

// Findings as a person reads them, worst first: a word for the severity (in colour on a terminal),
// the sentence, the evidence below it, then what to do. Those that are fine only with `all`.
std::string FindingsText(const std::vector<Finding>& findings, bool all);

// Findings as a JSON list, in the order given, indented by two at depth `indent`.
std::string FindingsJson(const std::vector<Finding>& findings);

// "2 errors, 1 warning"; "nothing to complain about".
std::string FindingsSummary(const std::vector<Finding>& findings);

// The exit status of every command that judges: kExitFine, kExitWarnings, kExitErrors.
int ExitStatusOf(const std::vector<Finding>& findings);

}  // namespace diapason::cli
