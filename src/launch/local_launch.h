#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "launch/helper.h"

namespace diapason::launch {

inline constexpr int kMostLocalRanks = 4096;
inline constexpr int kMostNodes = 16384;

// A program to be started as several ranks on this host: the whole job, or this host's share of it.
struct LocalLaunchOptions {
  int ranks = 1;       // on this host
  int nodes = 1;       // hosts, each with so many ranks
  int node_rank = 0;   // this one
  std::string master;  // MASTER_ADDR: the host of rank 0; "": the variable's
  int port = 0;        // MASTER_PORT; 0: the variable's, else a free one
  bool prefix = false;
  double grace = 5;                      // seconds that ranks have to end before they are killed
  double timeout = 0;                    // seconds until everything is ended; 0: never
  std::vector<std::string> assignments;  // "NAME=VALUE", accepted by CheckAssignment()
  std::string log_dir;                   // "": no files
  std::vector<std::string> command;
};

// Runs the ranks to their end and returns the exit status of the launch; an error where they could
// not be set up. `warn` is called before any rank has started.
// REQUIRES: a process with one thread.
Result<int> LaunchLocally(const LocalLaunchOptions& options,
                          const std::function<void(const std::string&)>& warn);

// The same as a helper process, for callers that have threads.
extern const Helper kLocalLaunch;
std::vector<std::string> LocalLaunchWords(
    const std::string& program, int ranks,
    const std::vector<std::pair<std::string, std::string>>& environment);

}  // namespace diapason::launch
