#pragma once

#include <string>
#include <vector>

#include "doctor/facts.h"

namespace diapason::doctor {

// The text of targets/four-gpu-nvlink.toml, which is compiled in.
extern const char* const kGoals;

// Parses the table that `diapason bench --targets` prints, and the headline above it. Other lines
// are skipped.
std::vector<GoalResult> ParseGoals(const std::string& output, std::string* headline);

}  // namespace diapason::doctor
