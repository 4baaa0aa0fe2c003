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

// What would be measured on one number of nodes, and how long it may take.
struct SweepPlan {
  measure::Subject subject;
  std::vector<search::CallCase> call_cases;
  SweepEstimate estimate;
};
std::string PlanText(const std::vector<SweepPlan>& plans);
std::string PlanJson(const std::vector<SweepPlan>& plans);

}  // namespace diapason::cli
