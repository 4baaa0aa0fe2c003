#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/commands/data/data.h"
#include "cli/framework/command.h"
#include "model/choose.h"
#include "model/grid.h"

namespace diapason::cli {

class CommandLine;

// The input of `train`, `evaluate` and `plan`: stores, and files that `data import` accepts.
struct ModelData {
  std::vector<std::string> files;
  DataFilter filter;
};
void AddModelData(CommandLine* command, ModelData* data, bool required);

// Prints warnings, for example about skipped data. Fails if a file cannot be read.
Result<model::Grid> ReadGrid(const ModelData& data, const model::GridOptions& options = {});

// The thresholds for a change: --margin, --confidence.
struct ChoiceFlags {
  std::string margin;
  std::string confidence;
};
void AddChoiceFlags(CommandLine* command, ChoiceFlags* flags, const model::ChoiceOptions& defaults);
Status ReadChoiceFlags(const ChoiceFlags& flags, model::ChoiceOptions* options);

// Rounds a figure for JSON to six digits: further digits are noise and differ between machines.
double Short(double value);

}  // namespace diapason::cli
