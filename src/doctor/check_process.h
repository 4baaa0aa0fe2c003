#pragma once

#include <string>
#include <vector>

#include "domain/finding.h"
#include "host/libraries.h"
#include "host/process.h"
#include "knobs/check.h"

namespace diapason::doctor {

// The state of a running process: two samples, a moment apart, and its loaded libraries.
struct ProcessFacts {
  host::ProcessSample before;
  host::ProcessSample after;
  std::vector<host::MappedFile> mapped;
  bool mapped_known = true;  // false: it could not be read, so a missing library proves nothing
  std::vector<host::LibraryFile> libraries;  // those of `mapped` that are NCCL or RCCL, in order
  std::vector<knobs::Assignment> assignments;
  std::vector<Finding> environment;
  std::string limits;                // /proc/PID/limits
  std::vector<std::string> unknown;  // what could not be read, and why
};

// Checks the library and its copies, the plugin, memory, limits, and where the library's threads
// run.
std::vector<Finding> CheckProcess(const ProcessFacts& facts);

// The change of resident memory between the two samples: "+1.5 MiB in 1.0 s".
std::string MemoryMoved(const host::ProcessSample& before, const host::ProcessSample& after);

// A thread's CPU use between the two samples.
struct ThreadUse {
  std::string name;
  host::ThreadRole role = host::ThreadRole::kOther;
  double busy = 0;     // share of one CPU
  double waiting = 0;  // fraction of the time in which it was runnable without a CPU
  int last_cpu = -1;
  std::string allowed_cpus;
};
// Busiest first. Threads that are in one sample only are left out.
std::vector<ThreadUse> UseOfThreads(const host::ProcessSample& before,
                                    const host::ProcessSample& after);

}  // namespace diapason::doctor
