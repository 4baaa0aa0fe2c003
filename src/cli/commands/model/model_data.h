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

// What `train`, `evaluate` and `plan` learn from: stores, and files that `data import` would take.
struct ModelData {
  std::vector<std::string> files;
  DataFilter filter;
};
void AddModelData(CommandLine* command, ModelData* data, bool required);

// Warnings, such as what was left out, are printed.
Result<model::Grid> ReadGrid(const ModelData& data, const model::GridOptions& options = {});

// What a change has to be worth: --margin, --confidence.
struct ChoiceFlags {
  std::string margin;
  std::string confidence;
};
void AddChoiceFlags(CommandLine* command, ChoiceFlags* flags, const model::ChoiceOptions& defaults);
Status ReadChoiceFlags(const ChoiceFlags& flags, model::ChoiceOptions* options);

// A figure for JSON, with six digits: more are noise, and not the same on every machine.
double Short(double value);

}  // namespace diapason::cli
