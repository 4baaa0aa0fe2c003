#pragma once

#include <string>

#include "base/environment.h"
#include "base/status.h"
#include "diapason/comm.h"
#include "rendezvous/tcp_store.h"

namespace diapason::comm {

// Who we are and where rank 0 is, before anybody has been asked.
struct LaunchInfo {
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // -1: not said; the bootstrap counts ranks per host
  std::string source;   // "options", "RANK and WORLD_SIZE", "Open MPI", "Slurm", "no launcher"
  rendezvous::StoreAddress address;
};

// From explicit options, else RANK and WORLD_SIZE (torchrun, diapason launch), else Open MPI's
// variables, else Slurm's, else one rank alone. Half a setting (a rank without a size), a rank out
// of range or something that is no number is an error that names the variable.
Result<LaunchInfo> FindLaunch(const GroupOptions& options, const Environment& environment);

// The first host of a Slurm list: "n[3-7,9],m1" -> "n3". "" when it cannot be read.
std::string FirstSlurmHost(const std::string& list);

}  // namespace diapason::comm
