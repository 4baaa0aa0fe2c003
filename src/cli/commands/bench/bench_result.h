#pragma once

#include <string>
#include <vector>

#include "measure/bench.h"
#include "report/table.h"

namespace diapason::cli {

// One line of `diapason bench`.
struct BenchRow {
  measure::Trial trial;
  measure::TimingFigure out_of_place;
  measure::TimingFigure in_place;
  bool has_in_place = true;
  double ideal = 0;  // seconds; 0: not known
};

struct BenchResult {
  measure::Subject subject;
  double link = 0;          // bytes per second; 0: not known
  std::string link_source;  // "given", "known to the backend", "measured between neighbours"
  std::vector<BenchRow> rows;

  // Mean over all figures, in place and out of place, as nccl-tests computes it; bytes per second.
  double AverageBusBandwidth() const;
  int64_t Wrong() const;
};

// The lines before the table and its head, one row, and the lines after the table. Columns that do
// not fit the terminal are left out of both.
std::string BenchHead(const BenchResult& result, const std::string& collective);
std::string BenchLine(const BenchRow& row, int ranks);
std::string BenchTail(const BenchResult& result);

std::string BenchJson(const BenchResult& result);
// Every figure of the results, a row each, for --csv and --format.
report::Table BenchTable(const std::vector<BenchResult>& results);

// The results of several backends in one table: one row per size, three columns per backend.
// REQUIRES: every result is of the same plan; one that ended early has fewer rows. Not empty.
std::string SideBySide(const std::vector<BenchResult>& results);

}  // namespace diapason::cli
