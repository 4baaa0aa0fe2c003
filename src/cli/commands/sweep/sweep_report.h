#pragma once

#include <string>
#include <vector>

#include "search/search.h"

namespace diapason::cli {

// One part of a sweep: all measurements on one number of nodes.
struct SweepPart {
  measure::Subject subject;
  std::vector<search::CallCase> call_cases;
  search::SamplesByCandidate known;
  int64_t samples = 0;
  double seconds = 0;
  int launches = 0;
  bool finished = true;
};

// The fastest configurations, their gains, and the failures.
std::string SweepTable(const SweepPart& part);
std::string SweepJson(const std::vector<SweepPart>& parts);

// What would be measured, and how long it may take.
struct SweepEstimate {
  size_t call_cases = 0;
  size_t candidates = 0;
  int64_t samples = 0;
  int launches = 0;
  double seconds = 0;
};
SweepEstimate EstimateSweep(const std::vector<search::CallCase>& call_cases,
                            const measure::Subject& subject, int repeats, double block_seconds,
                            double launch_seconds, bool launch_each);
std::string PlanText(const std::vector<search::CallCase>& call_cases,
                     const measure::Subject& subject, const SweepEstimate& estimate);

}  // namespace diapason::cli
