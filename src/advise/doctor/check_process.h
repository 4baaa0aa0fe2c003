#pragma once

#include <string>
#include <vector>

#include "advise/finding.h"
#include "advise/host/libraries.h"
#include "advise/host/process.h"
#include "advise/knobs/check.h"

namespace diapason::advise {

// What is known of a running process: two looks at it, a moment apart, and what it has loaded.
struct ProcessFacts {
  ProcessSample before;
  ProcessSample after;
  std::vector<MappedFile> mapped;
  bool mapped_known =
      true;  // false: it could not be read, and nothing follows from what is not there
  std::vector<LibraryFile> libraries;  // those of `mapped` that are NCCL or RCCL, in their order
  std::vector<Assignment> assignments;
  std::vector<Finding> environment;
  std::string limits;                // /proc/PID/limits
  std::vector<std::string> unknown;  // what could not be read, and why
};

// The library and its copies, the plugin, memory, limits, and where the library's threads run.
std::vector<Finding> CheckProcess(const ProcessFacts& facts);

// How resident memory moved between the two looks: "+1.5 MiB in 1.0 s".
std::string MemoryMoved(const ProcessSample& before, const ProcessSample& after);

// A thread's use of CPU between the two looks.
struct ThreadUse {
  std::string name;
  ThreadRole role = ThreadRole::kOther;
  double busy = 0;     // share of one CPU
  double waiting = 0;  // share of the time it was runnable without a CPU
  int last_cpu = -1;
  std::string allowed_cpus;
};
// Busiest first. Threads that were there only once are left out.
std::vector<ThreadUse> UseOfThreads(const ProcessSample& before, const ProcessSample& after);

}  // namespace diapason::advise
