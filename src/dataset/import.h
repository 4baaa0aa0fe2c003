#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dataset/store.h"

namespace diapason::dataset {

// Reward lines between these two comments come from a simulated cluster.
inline constexpr std::string_view kSimulatedMark = "# diapason: simulated";
inline constexpr std::string_view kSimulatedEnd = "# diapason: end of simulated";

// Properties that a file does not contain. If it does and they differ, importing fails.
struct ImportOptions {
  std::string collective;
  std::string type;  // "": f32
  int ranks = 0;     // 0: not given
  int nodes = 0;
  uint64_t bytes = 0;
  std::string algorithm;  // how it was run, which logs do not show
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
  // Messages for the user: assumptions, omissions, suspicious data.
  std::vector<std::string> messages;
  size_t rows = 0;  // lines that hold measurements
};

// Its runs and samples, as a store would give them.
StoreContents ContentsOf(Import import);

// Detects the format of a file by its content, and reads it: logs of nccl-tests and rccl-tests,
// nccl-tests' JSON (-J), rccl-tests' JSON (-Z json), an object a line or one list,
// tables with a column per property (rccl-sweep's grids, optimized_metrics.csv), reward lines, and
// the output of `diapason data export --format csv`. `name` is the file's. A run's id is derived
// from the content and the options.
Result<Import> ImportText(std::string_view text, const std::string& name,
                          const ImportOptions& options);

// One time in milliseconds per line: iterations of a program around one collective. Needs the
// collective, bytes and ranks.
Result<Import> ImportIterations(std::string_view text, const std::string& name,
                                const ImportOptions& options);

// The formats. Each function expects its own format.
Result<Import> ImportTestLog(std::string_view text, const std::string& name,
                             const ImportOptions& options);
Result<Import> ImportTable(std::string_view text, const std::string& name,
                           const ImportOptions& options);
Result<Import> ImportRewards(std::string_view text, const std::string& name,
                             const ImportOptions& options);
bool IsTestJson(std::string_view text);
Result<Import> ImportTestJson(std::string_view text, const std::string& name,
                              const ImportOptions& options);
// One object with all results, of nccl-tests (-J FILE).
bool IsNcclTestJson(std::string_view text);
Result<Import> ImportNcclTestJson(std::string_view text, const std::string& name,
                                  const ImportOptions& options);
Result<Import> ImportExport(std::string_view text, const std::string& name);

// Canonical text of the final options, for ids: equal options give equal texts.
std::string OptionsText(const ImportOptions& options);
std::string ImportId(std::string_view text, const std::string& options, size_t part);
// Whether a row and the options agree on what both contain.
Status AgreesWith(const ImportOptions& options, const Point& point);
// A point from the options; fails if they are inconsistent.
Result<Point> PointFromOptions(const ImportOptions& options, const std::string& collective);

}  // namespace diapason::dataset
