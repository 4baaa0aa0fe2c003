#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agree/freeze.h"
#include "learn/iterations.h"
#include "plugin/learning/learning.h"

namespace diapason::plugin {

// The one thread of the process that does what learning needs beside the calls themselves: takes in
// times, tells them to rank 0, decides what is tried next. It takes no signals, and the job goes on
// without it: what is not proposed in time is held.
class LearningThread {
 public:
  // The calling process's own; after a fork a new one, without a thread until it is needed.
  static LearningThread& Instance();

  void Add(std::shared_ptr<Learning> learning);
  // What was learned is saved and its cells are let go. Where the thread is busy with it for longer
  // than the deadline (a store that does not answer), the thread does that later.
  void Remove(Learning* learning, Deadline deadline);
  // Keeps what the process has in this store from expiring. The store lives as long as the process.
  void KeepStore(agree::CellStore* store);
  // Whether an operator wants nothing to be tried, through the store or by this file; looks at most
  // once a second. The thread's own.
  bool Frozen(agree::CellStore* store, const std::string& file, double now);

  // There is something to propose, and the sooner the better.
  void Wake() noexcept;
  // An iteration of the program has ended (diapason_step).
  void Step() noexcept;
  // One call took so long (diapason_report); false: nobody learns about such calls.
  bool Report(Collective collective, uint64_t bytes, double seconds) noexcept;
  // A collective is called; finds iterations in the order of the calls.
  void CallMade(uint64_t comm_id, int collective, uint64_t bytes) noexcept;

  // The process ends: the thread has a moment to finish.
  static void StopAtExit() noexcept;

 private:
  LearningThread();
  static void* RunThread(void* self);
  void Run();
  void Start();
  // Whether something is being tried.
  static bool TendOne(Learning* learning, double now) noexcept;
  void Sleep(long nanoseconds) noexcept;
  void MarkAll(RewardSource source, double now) noexcept;

  const pid_t owner_;
  pthread_mutex_t list_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t sleeping_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_;  // against the monotonic clock
  std::atomic<bool> wanted_{false};
  std::vector<std::shared_ptr<Learning>> learnings_;  // guarded by list_
  bool running_ = false;                              // guarded by list_
  std::atomic<agree::CellStore*> kept_{nullptr};
  std::atomic<bool> stop_{false};
  std::atomic<bool> stopped_{false};

  // The thread's own.
  double kept_at_ = 0;
  double froze_at_ = 0;
  bool frozen_ = false;
  std::unique_ptr<agree::FreezeLog> freeze_log_;

  pthread_mutex_t pattern_ = PTHREAD_MUTEX_INITIALIZER;
  learn::IterationFinder finder_;  // guarded by pattern_
};

}  // namespace diapason::plugin
