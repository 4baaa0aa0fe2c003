#pragma once

#include <vector>

#include "policy/policy.h"

namespace diapason::policy {

// Puts the rows that a job has learned before the rows of a policy. Rows of the policy that no call
// can reach any more are removed. A learned row that leaves the choice to the library is kept only
// if an older row would otherwise decide.
Policy MergeLearned(Policy policy, const std::vector<Rule>& learned);

}  // namespace diapason::policy
