#pragma once

#include <vector>

#include "measure/iteration.h"

namespace diapason::measure {

// What a step does between two chunks of compute, and the compute after it.
struct Moment {
  std::vector<size_t> starts;
  std::vector<size_t> joins;
  double seconds = 0;  // of compute that follows
};

// The moments of a step, in order. Those at which nothing happens are left out: the compute around
// them is one.
std::vector<Moment> PlanStep(const IterationSpec& spec);

}  // namespace diapason::measure
