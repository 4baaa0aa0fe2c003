#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/process.h"

namespace diapason::watch {

// How often a thread was seen waiting in a futex, of how many looks. It is a share of looks, not of
// time, and a futex may be a lock, a condition or another thread's end.
struct FutexLooks {
  size_t looks = 0;
  size_t told = 0;  // of those: it slept and the kernel said where, or it ran
  size_t futex = 0;
};
using FutexByThread = std::map<pid_t, FutexLooks>;

// What a thread, or all threads of one name, did between two looks.
struct ThreadRate {
  pid_t tid = 0;  // 0: a sum
  size_t threads = 1;
  std::string name;
  host::ThreadRole role = host::ThreadRole::kOther;
  char state = '?';
  double user = 0;  // CPUs: 1 is one CPU for all of the time
  double system = 0;
  bool has_wait = false;
  double wait = 0;  // share of the time in which it could have run and had no CPU; sums add up
  double voluntary_per_s = 0;
  double involuntary_per_s = 0;
  FutexLooks futex;
  int last_cpu = -1;
  std::string allowed_cpus;
  std::string waits_in;

  double cpu() const { return user + system; }
};

struct ProcessRate {
  double seconds = 0;
  ThreadRate total;
  // Those that NCCL, RCCL and we have named, each by itself, in the order of their numbers.
  std::vector<ThreadRate> named;
  // All others, summed by name, the busiest first.
  std::vector<ThreadRate> others;
  // Unnamed ones that take most of a CPU each, the busiest first, at most four: without
  // NCCL_SET_THREAD_NAME=1 the progress thread is among them.
  std::vector<ThreadRate> busy;
  double progress_cpu = 0;
  size_t progress_threads = 0;
  double major_faults_per_s = 0;
};

// REQUIRES: both are of the same process. Threads that were not there before count from nothing;
// one with the number of an earlier one is another one.
ProcessRate RatesOf(const host::ProcessSample& before, const host::ProcessSample& now,
                    const FutexByThread& futex);

}  // namespace diapason::watch
