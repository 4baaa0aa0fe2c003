#pragma once

#include <string>
#include <vector>

#include "tuner_v5.h"

namespace diapason::bench {

// A communicator of two ranks in this process that learns and has settled for all these sizes of
// allreduce: the tuner's context of rank 1. Exits with a message when that fails.
void* MakeSettledContext(void* plugin, const tuner_v5* tuner, const std::string& policy,
                         const std::vector<size_t>& sizes);

}  // namespace diapason::bench
