#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace diapason::env_tune {

// What a run of `diapason bench` or `diapason bench iteration` is judged by.
struct BenchFigures {
  double seconds = 0;  // the geometric mean of all times, or the median step; 0: a call has no time
  std::vector<std::pair<double, double>> sizes;  // bytes, seconds (0: not measured alone)
};
// Of a benchmark that measures every size alone.
BenchFigures FiguresOf(std::vector<std::pair<double, double>> sizes);

// The line that the benchmark prints for `diapason env tune`, and the figures of such a line in the
// output of a run. An error where there is none, where it is damaged, or where a call has no time.
std::string EncodeFigures(const BenchFigures& figures);
Result<BenchFigures> FindFigures(std::string_view output);

}  // namespace diapason::env_tune
