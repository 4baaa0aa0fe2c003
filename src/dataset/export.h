#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dataset/store.h"

namespace diapason::dataset {

// The first columns of an exported table, by which it is recognised.
inline constexpr std::string_view kExportMark = "run,source,origin,started,state,plan,library,";

// Every sample with its run, all digits; a run without samples has one line with empty cells.
// ImportText reads it back without loss.
std::string ExportCsv(const StoreContents& contents);

// optimized_metrics.csv, for training programs: for every collective, nodes, GPUs and size the best
// configuration. Among those whose median bus bandwidth is within `tolerance` of the best, the
// library's default if it is one of them, else the one with the fewest channels. *notes lists what
// this format cannot express. Simulated samples are marked in a column.
Result<std::string> ExportOptimized(const StoreContents& contents, double tolerance,
                                    std::vector<std::string>* notes);

// "running", "done", "interrupted".
const char* StateName(SampleRun::State state);
// The shortest text that parses to the same number; "" for none.
std::string NumberText(double value);

}  // namespace diapason::dataset
