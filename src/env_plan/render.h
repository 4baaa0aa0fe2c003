#pragma once

#include <string>

#include "env_plan/plan.h"

namespace diapason::env_plan {

enum class PlanFormat : uint8_t { kText, kShell, kSlurm, kDocker, kJson };
Result<PlanFormat> ParsePlanFormat(std::string_view text);

// For people.
std::string PlanText(const EnvPlan& plan);
// To be sourced, or put into a job script: export lines, everything else as comments.
std::string PlanShell(const EnvPlan& plan);
// The head of a batch script, which takes whole nodes where ranks are placed, and the options of
// srun. Values that `--export` cannot carry (it is
// separated by commas) are exported in the script, which hands them on.
std::string PlanSlurm(const EnvPlan& plan);
// A `docker run` whose image and command are missing; what places a rank inside is a comment.
std::string PlanDocker(const EnvPlan& plan);

}  // namespace diapason::env_plan
