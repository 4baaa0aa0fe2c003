#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "launch/helper.h"
#include "measure/ranks.h"

namespace diapason::measure {

// A rank of a JobMeasurer, as a helper process (launch/helper.h): rank 0 reads orders from standard
// input and answers on standard output, until the input ends.
struct WorkerOptions {
  RankOptions ranks;
  bool choose = true;  // calls may name configurations, which loads our plugin
};
extern const launch::Helper kWorker;

// The arguments of the helper, and back. What cannot be understood is an error.
std::vector<std::string> WorkerArguments(const WorkerOptions& options);
Result<WorkerOptions> ParseWorkerArguments(const std::vector<std::string>& arguments);

}  // namespace diapason::measure
