#pragma once

#include <string>
#include <vector>

#include "dataset/store.h"

namespace diapason::dataset {

enum class DataSeverity : uint8_t { kNote = 0, kWarning = 1, kError = 2 };
const char* SeverityName(DataSeverity severity);  // "note", "warning", "error"

// Data that should not be trusted without review.
struct DataFinding {
  DataSeverity severity = DataSeverity::kNote;
  std::string kind;                   // "independent-runs": for scripts
  std::string what;                   // one sentence
  std::vector<std::string> evidence;  // runs, files, points: the first few
  std::string advice;                 // what to do
};

// Most severe first. The thresholds are in check.cc; each finding's evidence has the numbers.
std::vector<DataFinding> Check(const StoreContents& contents);

}  // namespace diapason::dataset
