#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/framework/rules.h"
#include "diapason/comm.h"

namespace diapason::cli {

class CommandLine;

// How a command that needs several ranks starts them.
struct RankOptions {
  std::string backend = "auto";
  int ranks = 0;        // -g; 0: one per GPU, or 2 without GPUs (4 for a simulated cluster)
  std::string cluster;  // for the backend sim
  double limit = 0;     // seconds after which a wait counts as a hang; 0: see LimitOf
  uint64_t seed = 1;
};
// Declares -g, --backend, --cluster, --limit and --seed. `all`: --backend also accepts "all".
void AddRankOptions(CommandLine* command, RankOptions* options, bool all = false);
// Accepts the name of a simulated cluster; a file is checked only when it is read.
ValueRule ClusterName();

// The number of ranks on this host; whether a launcher has started this process as a rank; and the
// parts of the command line to start other ranks with.
int RanksHere(const RankOptions& options);
bool IsLaunched();
Result<std::string> OwnProgram();
Result<std::vector<std::string>> OwnArguments();
// --limit, else DIAPASON_TIMEOUT if it is set, else 60; in seconds.
double LimitOf(const RankOptions& options);
// Name of the simulated cluster: the option's value, else the setting's.
std::string ClusterOf(const RankOptions& options);

// The function that each rank runs; returns its exit status. Only rank 0 may write to standard
// output.
using RankBody = std::function<int(Group* group)>;

// Runs `body` on every rank, and returns the exit status of this process.
// - Started by a launcher (diapason launch, mpirun, srun, torchrun): this process is one rank.
// - Else, with the simulated cluster: the ranks are threads of this process.
// - Else this process is replaced by `diapason launch`, or by mpirun for the backend mpi, which
//   runs the same command line once per rank on this host.
// `choose`: calls may name configurations.
int OnEveryRank(const RankOptions& options, bool choose, const RankBody& body);

}  // namespace diapason::cli
