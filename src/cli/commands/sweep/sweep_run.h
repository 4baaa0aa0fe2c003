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

// The run in a store that a sweep writes. While the object exists, no other process can continue
// that run; other processes may write runs of their own into the same store.
struct SweepRun {
  std::string id;
  std::unique_ptr<OwnerLock> lock;
};

// The run to continue, or a new one. When continuing, `known` receives the existing samples, and
// configurations that failed are skipped: those that hung, crashed, computed wrong results or took
// the sweep down. With --retry-failed they are tried again. Fails if the sweep of this plan is
// complete or is being measured by another process.
Result<SweepRun> BeginOrResume(const SweepOptions& options, const measure::Subject& subject,
                               dataset::SampleStore* store,
                               const std::vector<search::CallCase>& call_cases,
                               search::SamplesByCandidate* known);

}  // namespace diapason::cli
