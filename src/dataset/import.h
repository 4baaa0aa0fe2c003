#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dataset/store.h"

namespace diapason::dataset {

// What a file does not say about itself. Where it does, and says something else, that is an error.
struct ImportOptions {
  std::string collective;
  std::string type;  // "": f32
  int ranks = 0;     // 0: not given
  int nodes = 0;
  uint64_t bytes = 0;
  std::string algorithm;  // how it was run: logs do not show it
  std::string protocol;
  int channels = 0;
  std::vector<std::string> environment;  // NAME=VALUE
  std::string library;
  std::string library_version;
  std::string gpu;
  std::string workload;
  std::optional<Point::Kind> kind;  // of reward lines
};

struct Import {
  std::string format;  // "nccl-tests log"
  std::vector<WholeRun> runs;
  // What the reader of the result has to know: what was assumed, left out, or looks wrong.
  std::vector<std::string> messages;
  size_t rows = 0;  // lines that hold measurements
};

// Recognises by its content what a file is, and reads it: logs of nccl-tests and rccl-tests, tables
// with a column per property (rccl-sweep's grids, optimized_metrics.csv), reward lines, and what
// `diapason data export --format csv` writes. `name` is the file's. A run's id comes from the
// content and the options.
Result<Import> ImportText(std::string_view text, const std::string& name,
                          const ImportOptions& options);

// One time in milliseconds a line: iterations of a program around one collective. Needs the
// collective, bytes and ranks.
Result<Import> ImportIterations(std::string_view text, const std::string& name,
                                const ImportOptions& options);

// The parts. Each expects its own format.
Result<Import> ImportTestLog(std::string_view text, const std::string& name,
                             const ImportOptions& options);
Result<Import> ImportTable(std::string_view text, const std::string& name,
                           const ImportOptions& options);
Result<Import> ImportRewards(std::string_view text, const std::string& name,
                             const ImportOptions& options);
Result<Import> ImportExport(std::string_view text, const std::string& name);

// The options as they are at the end, for ids: equal options give equal texts.
std::string OptionsText(const ImportOptions& options);
std::string ImportId(std::string_view text, const std::string& options, size_t part);
// Whether what a row says is what the options say, where both say something.
Status AgreesWith(const ImportOptions& options, const Point& point);
// A point with what the options say; an error where they make no sense.
Result<Point> PointFromOptions(const ImportOptions& options, const std::string& collective);

}  // namespace diapason::dataset
