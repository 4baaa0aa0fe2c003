#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "domain/finding.h"
#include "job/command.h"

namespace diapason::job {

// Whether a command starts an MPI program without NCCL or RCCL: the program is linked with an MPI
// library, and with no library for GPUs. A script, or a program whose MPI library is behind others,
// does not show it.
bool IsMpiProgram(const JobCommand& command, const Environment& environment);

// The variables by which Open MPI reads a rules file, and its path.
inline constexpr char kUseRulesVariable[] = "OMPI_MCA_coll_tuned_use_dynamic_rules";
inline constexpr char kRulesFileVariable[] = "OMPI_MCA_coll_tuned_dynamic_rules_filename";

// Words of the command, and variables, that choose algorithms themselves: they would win over rules
// of ours, or stand beside them.
std::vector<Finding> CheckOwnRules(const JobCommand& command, const Environment& environment);

}  // namespace diapason::job
