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

// Runs `body` on every rank, and returns this process's exit status.
// - Started by a launcher: this process is one rank.
// - Else, with the simulated cluster: the ranks are threads of this process.
// - Else this program is started again, with the same arguments, as so many ranks on this host by
//   the helper launch::kLocalLaunch, or by mpirun where the backend is mpi; this process is
//   replaced.
// `choose`: calls may name configurations. An error where no rank could be started.
Result<int> RunOnEveryRank(const RankOptions& options, bool choose, const RankBody& body);

}  // namespace diapason::measure
