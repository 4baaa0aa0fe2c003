#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/launcher.h"
#include "measure/measurer.h"
#include "measure/ranks.h"
#include "search/search.h"
#include "search/sweep.h"

namespace diapason::search {

// What measures: ranks that are started for it, the binaries of nccl-tests, or a dataset that is
// replayed.
struct MeasurerRequest {
  measure::RankOptions ranks;
  launch::Launcher launcher;          // ranks, nodes and, if empty, self are filled in
  bool launch_each = false;           // a launch for every configuration
  std::string replay;                 // a dataset to replay; "": none
  std::string tests_folder;           // the binaries of nccl-tests; "": our own ranks
  std::vector<Operation> operations;  // nccl-tests: whose binaries must be there
  std::vector<uint64_t> sizes;        // nccl-tests: what one launch measures
  double start_limit = 0;             // seconds until ranks are there; 0: the measurer's own
};

// The ranks on so many nodes; -g is per node, but for the simulated cluster.
int RanksOn(const MeasurerRequest& request, int nodes);

// Starts the ranks, or opens the dataset.
Result<std::unique_ptr<measure::Measurer>> MakeMeasurer(const MeasurerRequest& request, int nodes);
// The cases of a plan; for replays, those of the dataset.
Result<std::vector<CallCase>> CallCasesFor(const MeasurerRequest& request, const SweepPlan& plan,
                                           const measure::Measurer& measurer);
// What would be measured, without starting anything.
Result<measure::Subject> ExpectedSubject(const MeasurerRequest& request, int nodes);

}  // namespace diapason::search
