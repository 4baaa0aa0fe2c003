#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/root_fs.h"
#include "base/status.h"

namespace diapason::watch {

// Where a thread spent CPU time, by the kernel's sampling profiler.
struct ProfileLine {
  double share = 0;  // fraction of the process's samples
  pid_t tid = 0;
  std::string thread;  // its name
  std::string object;  // "libnccl.so.2", "[kernel.kallsyms]"
  std::string symbol;  // "ncclProxyProgress"
};
struct Profile {
  std::vector<ProfileLine> lines;  // the largest first
  uint64_t samples = 0;
  size_t damaged_lines = 0;
};

// Parses the output of `perf report --stdio -t TAB -s pid,dso,symbol`. Never fails: invalid lines
// are counted.
Profile ParsePerfReport(std::string_view text);

// Samples a process for some seconds with the perf tool in PATH, 99 times a second. The error gives
// the exact reason: no such tool, or not permitted (with the kernel's setting).
Result<Profile> ProfileProcess(const RootFs& tree, const Environment& environment, pid_t pid,
                               double seconds);

// Runs a program for at most `limit_s` seconds and keeps the first and the last few MiB of its
// output. Returns its exit status, or an error if it cannot be started or is too slow.
struct ProgramOutput {
  int status = 0;
  std::string out;
  std::string err;
};
Result<ProgramOutput> RunProgram(const std::vector<std::string>& command, double limit_s);

}  // namespace diapason::watch
