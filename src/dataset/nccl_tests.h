#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diapason::dataset {

// The output of nccl-tests and rccl-tests as parsed from a log, without interpretation. Columns and
// headers depend on the version; missing values stay empty.

// Half a row: out of place or in place.
struct LogTiming {
  bool there = false;
  double seconds = 0;
  double coarse = 0;  // see Sample::coarse
  double algbw = 0;   // bytes per second, as printed
  double busbw = 0;
  double algbw_coarse = 0;
  double busbw_coarse = 0;
  int64_t wrong = -1;  // -1: not checked ("N/A"), or no such column
};

struct LogRow {
  int line = 0;
  uint64_t bytes = 0;
  std::string type;    // "float"
  std::string reduce;  // "sum"; "" if there is no such column
  int root = -1;
  LogTiming out_of_place;
  LogTiming in_place;
};

struct LogDevice {
  int rank = 0;
  std::string host;
  std::string gpu;
};

struct LogTest {
  int line = 0;
  std::string program;     // "all_reduce_perf"; "" in older logs
  std::string tool;        // "nccl-tests 2.17.9", "rccl-tests"
  std::string library;     // "nccl", "rccl", or "" if the log does not say
  std::string version;     // "2.29.3"
  std::string parameters;  // "nThread 1 nGpus 8 ...", without the sizes
  int64_t iterations = 1;  // number of calls averaged
  std::vector<LogDevice> devices;
  std::vector<LogRow> rows;
  bool titles = false;  // the line with the columns' names was found
  int starts = 1;       // consecutive headers without rows between them
  int ends = 0;         // "Avg bus bandwidth"
  int cut_rows = 0;     // rows that end too early
  int bad_rows = 0;     // rows that could not be parsed
  int first_bad_line = 0;
  std::string first_bad_why;
  std::string failure;  // "Test NCCL failure ...": the first such line
};

// Whether a text looks like such a log.
bool IsTestLog(std::string_view text);
// The tests of a log in order. Other lines are skipped.
std::vector<LogTest> ParseTestLog(std::string_view text);

}  // namespace diapason::dataset
