#pragma once

#include <string>
#include <vector>

#include "doctor/facts.h"

namespace diapason::doctor {

// The text of targets/four-gpu-nvlink.toml, which is part of the program.
extern const char* const kGoals;

// The rows of the table that `diapason bench --targets` prints, and the line above it that says who
// was measured. Lines that are none of its own are passed over.
std::vector<GoalResult> ParseGoals(const std::string& output, std::string* headline);

}  // namespace diapason::doctor
