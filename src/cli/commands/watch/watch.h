#pragma once

#include <string>
#include <vector>

#include "domain/finding.h"
#include "watch/perf.h"
#include "watch/ras_watch.h"
#include "watch/watcher.h"

namespace diapason::cli {

// Options of `diapason watch`. Declared in watch.cc, implemented in watch_run.cc.
struct WatchAsked {
  std::vector<int> pids;
  bool children = false;
  bool job = false;  // all ranks of the job on this host
  double interval_s = 1;
  uint64_t count = 0;  // 0: until the processes end
  std::vector<std::string> journals;
  std::string baseline;
  std::string save_baseline;
  std::string prometheus;
  double profile_s = 0;  // 0: no profile
  bool json = false;
  bool quiet = false;
};
Result<int> RunWatch(const WatchAsked& asked);
Result<int> RunProfile(const WatchAsked& asked);

// One sample as text: one process in full, several processes on a line each.
std::string WatchText(const watch::WatchView& view);
// The threads of a process and where they spend their time.
std::string ProfileText(pid_t pid, const watch::Profile& profile);
// The sample as JSON, on one line without a line feed.
std::string WatchJson(const watch::WatchView& view, const watch::RasView& ras,
                      const std::vector<Finding>& findings);
std::string ProfileJson(pid_t pid, const watch::Profile& profile);
// The end of the run: {"type":"end",...} with the verdict and the comparison with the baseline.
std::string WatchEndJson(const std::vector<pid_t>& ended, const watch::RasView& ras,
                         const std::vector<Finding>& findings);

// What NCCL's RAS says about the job: a table for each communicator, and the verdict. "" if no
// watched process uses the library.
std::string RasText(const watch::RasView& ras);
// The processes of the job that these belong to, or of the only job on this host.
Result<std::vector<int>> ProcessesOfJob(const std::vector<int>& pids);

}  // namespace diapason::cli
