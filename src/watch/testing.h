#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "domain/finding.h"

// Helpers shared by the tests of this component.
namespace diapason::watch {

inline bool HasTitle(const std::vector<Finding>& findings, const std::string& part) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.title.find(part) != std::string::npos;
  });
}

inline bool HasId(const std::vector<Finding>& findings, const std::string& id) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.id == id; });
}

}  // namespace diapason::watch
