#pragma once

#include <string>

#include "base/environment.h"
#include "base/status.h"
#include "diapason/comm.h"
#include "rendezvous/tcp_store.h"

namespace diapason::comm {

// This process's rank and rank 0's address, before any communication.
struct LaunchInfo {
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // -1: not given; the bootstrap counts ranks per host
  std::string source;   // "options", "RANK and WORLD_SIZE", "Open MPI", "Slurm", "no launcher"
  rendezvous::StoreAddress address;
};

// Reads explicit options, else RANK and WORLD_SIZE (torchrun, diapason launch), else Open MPI's
// variables, else Slurm's, else assumes one rank. An incomplete setting (a rank without a size), a
// rank out of range or a value that is not a number is an error that names the variable.
Result<LaunchInfo> FindLaunch(const GroupOptions& options, const Environment& environment);

// The first host of a Slurm list: "n[3-7,9],m1" -> "n3". "" if it cannot be parsed.
std::string FirstSlurmHost(const std::string& list);

}  // namespace diapason::comm
