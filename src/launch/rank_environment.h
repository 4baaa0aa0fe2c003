#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/status.h"

namespace diapason::launch {

// What every rank of a job has in common.
struct LocalJobInfo {
  int ranks = 1;  // on this host
  int port = 0;
  int threads = 1;          // OMP_NUM_THREADS, where the environment does not have it
  std::string secret_file;  // DIAPASON_SECRET_FILE
  int nodes = 1;            // hosts, each with so many ranks
  int node_rank = 0;        // this one
  std::string master = "localhost";

  int first_rank() const { return node_rank * ranks; }
};

// True for variables that tell a process its place in a job, and how its ranks know each other:
// ours, and those of mpirun, srun, flux, jsrun, PALS and torchrun. A rank that inherited them would
// take another job's place for its own.
bool SaysPlaceInJob(const std::string& name);

// "NAME=VALUE" with a usable name that `launch` does not set itself.
Status CheckAssignment(const std::string& text);

// The environment of the rank with this number on its host, as execve takes it: `inherited` without
// the above, then ours, then `assignments`, of which the last wins. REQUIRES: CheckAssignment()
// accepts each of them.
std::vector<std::string> RankEnvironment(const Environment& inherited, const LocalJobInfo& place,
                                         int rank, const std::vector<std::string>& assignments);

// MASTER_PORT for a job on this host: `wanted` (0: none), else the variable, else one that is free
// now. A wanted port that cannot be used is an error; for the variable's, which another launcher
// may have left there, a free one is taken and `*warning` says so.
Result<int> ChoosePort(int wanted, const Environment& inherited, std::string* warning);

// What a job on several hosts has in common: `master` and `port`, else MASTER_ADDR and MASTER_PORT,
// and the secret that is in the environment. Fails where one of them is missing.
Status CompleteShared(const Environment& inherited, int port, LocalJobInfo* info);

}  // namespace diapason::launch
