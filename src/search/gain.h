#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include "search/surrogate.h"

namespace diapason::search {

// The candidate that would be chosen in a case now, and the runner-up.
struct Standing {
  size_t chosen = 0;
  double chosen_mean = INFINITY;  // log seconds
  double next_mean = INFINITY;
  double next_variance = 0;
};
// By Judge's rule: of those with samples, the best that is clearly ahead of the default.
Standing Stand(const Surrogate& surrogate, size_t call_case,
               const std::vector<CandidateSamples>& known,
               const std::function<bool(size_t candidate)>& sampled);

// What one sample of a candidate is expected to improve the choice by, in log seconds.
double ExpectedGain(const Surrogate& surrogate, size_t call_case, size_t candidate,
                    const Standing& standing);

}  // namespace diapason::search
