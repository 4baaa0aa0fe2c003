#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/stats.h"
#include "dataset/store.h"

namespace diapason::dataset {

// The samples of one configuration in one context.
struct ConfigSummary {
  Point point;
  std::vector<double> seconds;  // of the valid samples, in order
  // For each of them, what it was measured together with: a run, and the day since its start; -1
  // where samples have no time. Speeds of different blocks can differ for reasons of the day.
  std::vector<std::pair<size_t, int>> blocks;
  std::vector<size_t> runs;  // their runs, without duplicates
  double median = 0;         // seconds; 0 without valid samples
  Interval interval;         // of the median, at 95 %, never narrower than the rounding of digits
  double coarse = 0;         // the coarsest of its samples
  size_t failures = 0;
  SampleOutcome failure = SampleOutcome::kFine;  // of the last that failed
  std::string note;

  bool fine() const { return !seconds.empty(); }
};

// Configurations that are compared: one collective, size and place, measured or simulated, of one
// library.
struct ConfigGroup {
  Point context;  // without a configuration
  bool simulated = false;
  std::string library;
  std::vector<ConfigSummary> entries;  // fastest first; those without a time last
  std::optional<size_t> standard;      // the library's own choice, if it was measured
  size_t samples = 0;

  // Whether the data do not distinguish an entry from the best.
  bool TiesWithBest(size_t entry) const;
};

// The same call, place and size, without the configuration.
Point WithoutConfig(Point point);

// In the order of collective, kind, nodes, ranks, type, place and size.
std::vector<ConfigGroup> Summarise(const StoreContents& contents);

// "allreduce, 8 ranks on 1 node, f32 sum, in place"; without the size.
std::string ContextText(const Point& point);
// "4MiB", "8 B".
std::string SizeText(uint64_t bytes);
// "12.3 us", "4.56 ms".
std::string TimeText(double seconds);
// "1.918 ms [1.467, 3.729]": a median, and its interval or range in the same unit; the time alone
// for one sample. The report's page writes times with the same digits (assets/format.js).
std::string TimeFigureText(double median, const Interval& interval, size_t samples);

}  // namespace diapason::dataset
