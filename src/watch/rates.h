#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/process.h"

namespace diapason::watch {

// In how many samples a thread was waiting in a futex. It is a fraction of samples, not of time,
// and a futex may be a lock, a condition variable or a join.
struct FutexLooks {
  size_t looks = 0;
  size_t told = 0;  // of those: it ran, or the kernel reported where it slept
  size_t futex = 0;
};
using FutexByThread = std::map<pid_t, FutexLooks>;

// The activity of a thread, or of all threads of one name, between two samples.
struct ThreadRate {
  pid_t tid = 0;  // 0: a sum
  size_t threads = 1;
  std::string name;
  host::ThreadRole role = host::ThreadRole::kOther;
  char state = '?';
  double user = 0;  // in CPUs: 1 is one CPU all the time
  double system = 0;
  bool has_wait = false;
  // Fraction of the time in which it was runnable without a CPU; sums may exceed 1.
  double wait = 0;
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
  // Threads named by NCCL, RCCL or diapason, individually, by thread id.
  std::vector<ThreadRate> named;
  // All other threads, summed by name, the busiest first.
  std::vector<ThreadRate> others;
  // Unnamed threads that each use most of a CPU, the busiest first, at most four: without
  // NCCL_SET_THREAD_NAME=1 the progress thread is among them.
  std::vector<ThreadRate> busy;
  double progress_cpu = 0;
  size_t progress_threads = 0;
  double major_faults_per_s = 0;
};

// REQUIRES: both are of the same process. New threads count from zero; a reused thread id is a new
// thread.
ProcessRate RatesOf(const host::ProcessSample& before, const host::ProcessSample& now,
                    const FutexByThread& futex);

}  // namespace diapason::watch
