#pragma once

#include <optional>
#include <vector>

#include "job_profile/iterations.h"
#include "job_profile/timeline.h"

namespace diapason::job_profile {

// Whether a call is one of them.
bool IsCounted(const Call& call, const std::vector<Role>& roles, const CountedCalls& counted);

// The iterations of a rank where their number of calls is known from elsewhere: from one of these
// calls to the one that comes so many later. Where in the program that is does not matter: each has
// the length of an iteration, and begins where the one before ends. Calls that some iterations have
// more shift them.
RankIterations CountIterations(const Timeline& timeline, const std::vector<Role>& roles,
                               const CountedCalls& counted);

}  // namespace diapason::job_profile
