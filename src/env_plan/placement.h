#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/root_fs.h"
#include "host/machine.h"

namespace diapason::env_plan {

// For every CPU the first of those that share its core.
using CoreOf = std::map<int, int>;
CoreOf ReadCores(const RootFs& tree, const std::vector<int>& cpus);

// Where one rank of a host should run.
struct RankBinding {
  int rank = 0;
  int gpu = -1;             // its GPU; -1: the host has none
  int node = -1;            // the NUMA node of all its CPUs; -1: several, or not told
  std::vector<int> cpus;    // ascending; never one that this process may not use
  bool whole_node = false;  // all CPUs of the node are in it
};

// Places `ranks` ranks: rank r has GPU r modulo their number and gets CPUs near it. Ranks that
// share CPUs split them: whole cores as long as there are enough, then single threads, and when
// even those do not suffice several ranks share all of them. What somebody should know about it is
// added to `notes`, one sentence each. Empty when nothing is known about CPUs.
std::vector<RankBinding> PlaceRanks(const host::Machine& machine, const CoreOf& cores, int ranks,
                                    std::vector<std::string>* notes);

// What to put before a rank's command.
std::string NumactlPrefix(const RankBinding& place);  // "numactl --cpunodebind=0 --membind=0"
std::string TasksetPrefix(const RankBinding& place);  // "taskset -c 0-7"
// One command line for all ranks: the local rank, which every launcher has in a variable of its
// own, picks the place. What follows it is the program and its arguments.
std::string WrapperLine(const std::vector<RankBinding>& places);
// For Slurm: "0xff00".
std::string CpuMask(const std::vector<int>& cpus);

}  // namespace diapason::env_plan
