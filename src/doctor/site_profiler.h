#pragma once

#include <vector>

#include "base/environment.h"
#include "domain/finding.h"
#include "knobs/check.h"

namespace diapason::doctor {

// Names the profiler that diapason's profiler half would chain, by the rules that it follows in a
// job (plugin/profiler/second_library.h), but from files alone: nothing is opened or executed.
// Nothing where that half is not loaded, and nothing without checked_for.tree.
std::vector<Finding> CheckSiteProfiler(const std::vector<knobs::Assignment>& assignments,
                                       const knobs::CheckedFor& checked_for,
                                       const Environment& environment);

}  // namespace diapason::doctor
