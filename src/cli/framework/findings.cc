#include "cli/framework/findings.h"

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"

namespace diapason::cli {
namespace {

std::string Tag(Severity severity) {
  const std::string name(SeverityName(severity));
  std::string padded = name + ":";
  padded.resize(9, ' ');
  if (!ColoursOn()) return padded;
  const char* colour = severity == Severity::kError     ? "\033[1;31m"
                       : severity == Severity::kWarning ? "\033[1;33m"
                       : severity == Severity::kNote    ? "\033[1;36m"
                                                        : "\033[32m";
  return colour + padded + "\033[0m";
}

}  // namespace

std::string FindingsText(const std::vector<Finding>& findings, bool all) {
  std::vector<Finding> sorted = findings;
  SortBySeverity(&sorted);
  std::string text;
  for (const Finding& finding : sorted) {
    if (finding.severity == Severity::kFine && !all) continue;
    text += Tag(finding.severity) + Printable(finding.title) + "\n";
    for (const std::string& line : finding.evidence) text += "           " + Printable(line) + "\n";
    if (!finding.action.empty()) text += "         > " + Printable(finding.action) + "\n";
  }
  return text;
}

std::string FindingsJson(const std::vector<Finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"id", finding.id},
                    {"severity", SeverityName(finding.severity)},
                    {"title", finding.title},
                    {"evidence", finding.evidence},
                    {"action", finding.action}});
  }
  return JsonText(list);
}

std::string FindingsSummary(const std::vector<Finding>& findings) {
  size_t counts[4] = {};
  for (const Finding& finding : findings) ++counts[static_cast<size_t>(finding.severity)];
  std::vector<std::string> parts;
  if (counts[3] > 0) parts.push_back(Count(counts[3], "error"));
  if (counts[2] > 0) parts.push_back(Count(counts[2], "warning"));
  if (counts[1] > 0) parts.push_back(Count(counts[1], "note"));
  return parts.empty() ? "no problems found" : Join(parts, ", ");
}

int ExitStatusOf(const std::vector<Finding>& findings) {
  switch (Worst(findings)) {
    case Severity::kError:
      return kExitErrors;
    case Severity::kWarning:
      return kExitWarnings;
    case Severity::kNote:
    case Severity::kFine:
      break;
  }
  return kExitFine;
}

}  // namespace diapason::cli
