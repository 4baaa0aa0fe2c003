#pragma once

#include <string>

#include "base/status.h"
#include "compare/comparison.h"

namespace diapason::cli {

class CommandLine;

// What `compare` and `bench --against` are told about verdicts and output.
struct ComparisonOutput {
  std::string fail_on;    // a share as text; "": never fails
  std::string threshold;  // "": by default
  std::string junit;      // a file; "": none
  bool json = false;
  bool markdown = false;
};

// --fail-on, --threshold and --junit.
void AddComparisonOptions(CommandLine* command, ComparisonOutput* output);
Result<compare::CompareOptions> ReadComparisonOptions(const ComparisonOutput& output);
// Prints it and writes the file of --junit; returns the exit status.
Result<int> PrintComparison(const compare::Comparison& comparison, const ComparisonOutput& output);

}  // namespace diapason::cli
