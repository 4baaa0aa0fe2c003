#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/framework/rules.h"
#include "diapason/comm.h"

namespace diapason::cli {

class CommandLine;

// How a command that needs several ranks gets them.
struct RankOptions {
  std::string backend = "auto";
  int ranks = 0;        // -g; 0: as many as there are GPUs, else 2 (4 of a simulated cluster)
  std::string cluster;  // of the backend sim
  double limit = 0;     // seconds a wait may take before it counts as a hang; 0: see LimitOf
  uint64_t seed = 1;
};
// -g, --backend, --cluster, --limit, --seed. `all`: --backend takes that word too.
void AddRankOptions(CommandLine* command, RankOptions* options, bool all = false);
// A simulated cluster by its name; files are only looked at when they are read.
ValueRule ClusterName();

// How many ranks that would be on this host; whether a launcher has made this process a rank; and
// the pieces to start others with.
int RanksHere(const RankOptions& options);
bool IsLaunched();
Result<std::string> OwnProgram();
Result<std::vector<std::string>> OwnArguments();
// --limit, else DIAPASON_TIMEOUT where it is set, else 60 s; in seconds.
double LimitOf(const RankOptions& options);
// The simulated cluster's name: the option's, else the setting's.
std::string ClusterOf(const RankOptions& options);

// What a rank does; returns its exit status. Only rank 0 may write to standard output.
using RankBody = std::function<int(Group* group)>;

// Runs `body` on every rank, and returns this process's exit status.
// - Started by a launcher (diapason launch, mpirun, srun, torchrun): this process is one rank.
// - Else, with the simulated cluster: the ranks are threads of this process.
// - Else this command line is started anew as so many ranks on this host, under `diapason launch`,
//   or under mpirun where the backend is mpi; this process is replaced.
// `choose`: calls may name configurations.
int OnEveryRank(const RankOptions& options, bool choose, const RankBody& body);

}  // namespace diapason::cli
