#pragma once

#include <string>
#include <vector>

#include "domain/finding.h"
#include "watch/perf.h"
#include "watch/watcher.h"

namespace diapason::cli {

// Options of `diapason watch`. Declared in watch.cc, implemented in watch_run.cc.
struct WatchAsked {
  std::vector<int> pids;
  bool children = false;
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
std::string WatchJson(const watch::WatchView& view, const std::vector<Finding>& findings);
std::string ProfileJson(pid_t pid, const watch::Profile& profile);
// The end of the run: {"type":"end",...} with the comparison with the baseline.
std::string WatchEndJson(const std::vector<pid_t>& ended, const std::vector<Finding>& findings);

}  // namespace diapason::cli
