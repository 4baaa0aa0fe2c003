#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/status.h"

namespace diapason::launch {

// What every rank of a job has in common.
struct LocalJobInfo {
  int ranks = 1;
  int port = 0;
  int threads = 1;          // OMP_NUM_THREADS, where the environment does not have it
  std::string secret_file;  // DIAPASON_SECRET_FILE
};

// True for variables that tell a process its place in a job, and how its ranks know each other:
// ours, and those of mpirun, srun, flux, jsrun, PALS and torchrun. A rank that inherited them would
// take another job's place for its own.
bool SaysPlaceInJob(const std::string& name);

// "NAME=VALUE" with a usable name that `launch` does not set itself.
Status CheckAssignment(const std::string& text);

// The environment of one rank, as execve takes it: `inherited` without the above, then ours, then
// `assignments`, of which the last wins. REQUIRES: CheckAssignment() accepts each of them.
std::vector<std::string> RankEnvironment(const Environment& inherited, const LocalJobInfo& place,
                                         int rank, const std::vector<std::string>& assignments);

// MASTER_PORT for a job on this host: `wanted` (0: none), else the variable, else one that is free
// now. A wanted port that cannot be used is an error; for the variable's, which another launcher
// may have left there, a free one is taken and `*warning` says so.
Result<int> ChoosePort(int wanted, const Environment& inherited, std::string* warning);

}  // namespace diapason::launch
