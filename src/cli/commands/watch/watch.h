#pragma once

#include <string>
#include <vector>

#include "domain/finding.h"
#include "watch/perf.h"
#include "watch/watcher.h"

namespace diapason::cli {

// `diapason watch`: what was asked. Declared in watch.cc, done in watch_run.cc.
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
int RunWatch(const WatchAsked& asked);
int RunProfile(const WatchAsked& asked);

// One look, for people: one process in full, several on a line each.
std::string WatchText(const watch::WatchView& view);
// The threads of a process with what they spend their time in.
std::string ProfileText(pid_t pid, const watch::Profile& profile);
// The same as JSON, on one line without its end.
std::string WatchJson(const watch::WatchView& view, const std::vector<Finding>& findings);
std::string ProfileJson(pid_t pid, const watch::Profile& profile);
// How it ended: {"type":"end",...} with what the baseline says.
std::string WatchEndJson(const std::vector<pid_t>& ended, const std::vector<Finding>& findings);

}  // namespace diapason::cli
