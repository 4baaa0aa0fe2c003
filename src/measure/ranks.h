#pragma once

#include <functional>
#include <string>

#include "diapason/comm.h"
#include "launch/launcher.h"

namespace diapason::measure {

// How a program that measures gets its ranks.
struct RankOptions {
  std::string backend = "auto";
  int ranks = 0;        // 0: as many as there are GPUs, else 2 (4 of a simulated cluster)
  std::string cluster;  // of the backend sim
  double limit = 0;     // seconds a wait may take before it counts as a hang; 0: see LimitOf
  uint64_t seed = 1;
  // The file of NCCL or RCCL, for a program that chooses one before it starts ranks; nothing in
  // this component reads it: ranks go by DIAPASON_NCCL_LIBRARY and DIAPASON_RCCL_LIBRARY.
  std::string library_file;
};

// The backend: the option's, else that of DIAPASON_BACKEND. "auto": the first that works.
std::string BackendOf(const RankOptions& options);
// The number of ranks on this host.
int RanksHere(const RankOptions& options);
// How ranks of a backend are started on this host by the program `self`.
launch::Launcher LauncherHere(const std::string& backend, int ranks, const std::string& self);
// Whether a launcher (diapason launch, mpirun, srun, torchrun) has made this process a rank.
bool IsLaunched();
// The option's limit, else DIAPASON_TIMEOUT where it is set, else 60; in seconds.
double LimitOf(const RankOptions& options);
// The simulated cluster's name: the option's, else the setting's.
std::string ClusterOf(const RankOptions& options);

// What a rank does; returns its exit status. Only rank 0 may write to standard output.
using RankBody = std::function<Result<int>(Group* group)>;

// The first problem of the settings in the environment.
Status CheckSettings();
// Whether the ranks need no other process: this one is a rank that a launcher has started, or the
// only one, or the ranks are simulated.
bool RanksAreHere(const RankOptions& options);

// Runs `body` on every rank, and returns this process's exit status: as one rank, or as all of a
// simulated cluster, in threads. `choose`: calls may name configurations. An error where a rank
// could not be started, or `body` returns one.
// REQUIRES: RanksAreHere(options)
Result<int> RunOnEveryRank(const RankOptions& options, bool choose, const RankBody& body);

}  // namespace diapason::measure
