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

// The one thread of the process that does the background work of learning: takes in times, posts
// them for rank 0, decides on rank 0 what to try next. It blocks all signals. The job does not
// depend on it: without a proposal in time, ranks hold the current choice.
class LearningThread {
 public:
  // The instance of the calling process; after a fork the child gets a new one, whose thread starts
  // when it is needed.
  static LearningThread& Instance();

  void Add(std::shared_ptr<Learning> learning);
  // Saves the results and releases the cells. If the thread is busy with `learning` beyond the
  // deadline (a store that does not answer), the thread does that later.
  void Remove(Learning* learning, Deadline deadline);
  // Keeps this process's cells in the store from expiring. The store must live as long as the
  // process.
  void KeepStore(agree::CellStore* store);
  // Whether an operator has frozen exploration, through the store or by this file; looks at most
  // once a second. Called by the thread only.
  bool Frozen(agree::CellStore* store, const std::string& file, double now);

  // Wakes the thread because there is something to propose.
  void Wake() noexcept;
  // An iteration of the program has ended (diapason_step).
  void Step() noexcept;
  // One call took `seconds` (diapason_report); false: such calls are not learned.
  bool Report(Collective collective, uint64_t bytes, double seconds) noexcept;
  // A collective is called; detects iterations in the order of the calls.
  void CallMade(uint64_t comm_id, int collective, uint64_t bytes) noexcept;

  // At process exit: gives the thread a moment to finish.
  static void StopAtExit() noexcept;

 private:
  LearningThread();
  static void* RunThread(void* self);
  void Run();
  void Start();
  // Returns whether the learning explores.
  static bool PollOne(Learning* learning, double now) noexcept;
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

  // Used by the thread only.
  double kept_at_ = 0;
  double froze_at_ = 0;
  bool frozen_ = false;
  std::unique_ptr<agree::FreezeLog> freeze_log_;

  pthread_mutex_t pattern_ = PTHREAD_MUTEX_INITIALIZER;
  learn::IterationFinder finder_;  // guarded by pattern_
};

}  // namespace diapason::plugin
