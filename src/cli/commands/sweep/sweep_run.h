#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/owner_lock.h"
#include "base/status.h"
#include "cli/commands/sweep/sweep_options.h"
#include "dataset/store.h"
#include "search/search.h"

namespace diapason::cli {

// The run of a store that a sweep writes. While it lives, no other process can go on with that run;
// others may write runs of their own into the store at the same time.
struct SweepRun {
  std::string id;
  std::unique_ptr<OwnerLock> lock;
};

// The run to go on with, or a new one. Of the former, `known` gets what was measured, and what
// failed in it is passed over: what hung, crashed, computed wrong results or took the sweep down.
// With --retry-failed it is tried again. A sweep of this plan that is complete, or that another
// process is measuring, is an error.
Result<SweepRun> BeginOrResume(const SweepOptions& options, const measure::Subject& subject,
                               dataset::SampleStore* store,
                               const std::vector<search::CallCase>& call_cases,
                               search::SamplesByCandidate* known);

}  // namespace diapason::cli
