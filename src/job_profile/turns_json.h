#pragma once

#include <nlohmann/json_fwd.hpp>

#include "job_profile/turns.h"

namespace diapason::job_profile {

// The comparison of a default and a policy that took turns, as every command prints it.
nlohmann::ordered_json TurnComparisonJson(const TurnComparison& compared);

}  // namespace diapason::job_profile
