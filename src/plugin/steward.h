#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "learn/iterations.h"
#include "plugin/learning.h"

namespace diapason::plugin {

// The one thread of the process that does what learning needs beside the calls themselves: takes in
// times, tells them to rank 0, decides what is tried next. It takes no signals, and the job goes on
// without it: what is not proposed in time is held.
class Steward {
 public:
  // The calling process's own; after a fork a new one, without a thread until it is needed.
  static Steward& Instance();

  void Add(Learning* learning);
  // Does not return before the thread has let go of it.
  void Remove(Learning* learning);

  // There is something to propose, and the sooner the better.
  void Wake() noexcept;
  // An iteration of the program has ended (diapason_step).
  void Step() noexcept;
  // One call took so long (diapason_report); false: nobody learns about such calls.
  bool Report(Collective collective, uint64_t bytes, double seconds) noexcept;
  // A collective is called; finds iterations in the order of the calls.
  void CallMade(uint64_t comm_id, int collective, uint64_t bytes) noexcept;

  // The process ends: the thread is given a moment to finish.
  static void StopAtExit() noexcept;

 private:
  Steward();
  static void* RunThread(void* self);
  void Run();
  void Sleep(long nanoseconds) noexcept;
  void MarkAll(RewardSource source, double now) noexcept;

  const pid_t owner_;
  // Held while learnings are tended, which may take as long as the store allows; then the other.
  pthread_mutex_t tending_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t list_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t sleeping_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_;  // against the monotonic clock
  std::atomic<bool> wanted_{false};
  std::vector<Learning*> learnings_;  // guarded by list_; changed only with tending_ held too
  bool running_ = false;              // guarded by list_
  std::atomic<bool> stop_{false};
  std::atomic<bool> stopped_{false};

  pthread_mutex_t pattern_ = PTHREAD_MUTEX_INITIALIZER;
  learn::IterationFinder finder_;  // guarded by pattern_
};

}  // namespace diapason::plugin
