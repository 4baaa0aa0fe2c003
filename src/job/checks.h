#pragma once

#include <vector>

#include "base/environment.h"
#include "domain/finding.h"
#include "job/prepare.h"

namespace diapason::job {

// The environment of the ranks: the inherited one with ours on top.
MapEnvironment RankEnvironment(const Environment& inherited,
                               const std::vector<RankVariable>& variables);

// What keeps the settings of a prepared job from being read or from working: variables that win
// over a tuner, a library that is too old, a launcher that drops them, several hosts without a
// store. Reads the files of libraries, and executes nothing.
std::vector<Finding> CheckJob(const PreparedJob& job, const Environment& inherited);

}  // namespace diapason::job
