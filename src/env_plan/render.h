#pragma once

#include <string>

#include "env_plan/plan.h"

namespace diapason::env_plan {

enum class PlanFormat : uint8_t { kText, kShell, kSlurm, kDocker, kJson };
Result<PlanFormat> ParsePlanFormat(std::string_view text);

// Text for the terminal.
std::string PlanText(const EnvPlan& plan);
// To be sourced, or put into a job script: export lines, the rest as comments.
std::string PlanShell(const EnvPlan& plan);
// The head of a batch script, which takes whole nodes if ranks are placed, and the options of srun.
// Values that `--export` cannot carry (it is comma-separated) are exported in the script, which
// passes them on.
std::string PlanSlurm(const EnvPlan& plan);
// A `docker run` without image and command; the placement of a rank inside is a comment.
std::string PlanDocker(const EnvPlan& plan);

}  // namespace diapason::env_plan
