#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/root_fs.h"
#include "host/machine.h"

namespace diapason::env_plan {

// For every CPU the first CPU of its core.
using CoreOf = std::map<int, int>;
CoreOf ReadCores(const RootFs& tree, const std::vector<int>& cpus);

// Where one rank of a host should run.
struct RankBinding {
  int rank = 0;
  int gpu = -1;             // its GPU; -1: the host has none
  int node = -1;            // the NUMA node of all its CPUs; -1: several, or unknown
  std::vector<int> cpus;    // ascending; only CPUs that this process may use
  bool whole_node = false;  // it contains all CPUs of the node
};

// Places `ranks` ranks: rank r has GPU r modulo their number and gets CPUs near it. Ranks with the
// same CPUs divide them: whole cores as long as there are enough, then single threads, and if even
// those do not suffice several ranks share all of them. Adds messages for the user to `notes`, one
// sentence each. Empty if nothing is known about CPUs.
std::vector<RankBinding> PlaceRanks(const host::Machine& machine, const CoreOf& cores, int ranks,
                                    std::vector<std::string>* notes);

// The prefix of a rank's command.
std::string NumactlPrefix(const RankBinding& place);  // "numactl --cpunodebind=0 --membind=0"
std::string TasksetPrefix(const RankBinding& place);  // "taskset -c 0-7"
// One command line for all ranks: the local rank, from the launcher's variable, selects the place.
// The program and its arguments follow it.
std::string WrapperLine(const std::vector<RankBinding>& places);
// For Slurm: "0xff00".
std::string CpuMask(const std::vector<int>& cpus);

}  // namespace diapason::env_plan
