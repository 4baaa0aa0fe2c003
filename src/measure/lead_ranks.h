#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "measure/job_measurer.h"
#include "measure/rank_measurer.h"
#include "measure/ranks.h"

namespace diapason::measure {

// Starts ranks on this host for a measurement that a user waits for: what they print is shown on
// standard error, and ranks that fail are not started again.
Result<std::unique_ptr<JobMeasurer>> StartRanks(const RankOptions& options, bool choose);

// Runs `body` with a measurer, and returns its exit status. The ranks are those that a launcher has
// started (rank 0 runs `body`, the others follow it and return 0), threads of a simulated cluster,
// or helper processes that this function starts. Only `body` may write to standard output.
// `choose`: calls may name configurations.
Result<int> LeadRanks(const RankOptions& options, bool choose,
                      const std::function<Result<int>(RankMeasurer* measurer)>& body);

}  // namespace diapason::measure
