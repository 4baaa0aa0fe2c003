#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <vector>

#include "learn/iterations.h"
#include "plugin/learning/learning_worker.h"
#include "plugin/learning/waker.h"

namespace diapason::plugin {

// The one thread of the process that does the background work of learning: it owns a LearningWorker
// per communicator and polls them. It blocks all signals. The job does not depend on it: without a
// proposal in time, ranks hold the current choice.
class LearningThread {
 public:
  // The instance of the calling process; after a fork the child gets a new one, whose thread starts
  // when it is needed.
  static LearningThread& Instance();

  void Add(std::shared_ptr<LearningHandover> handover);
  // Ends the worker of this hand-over, see LearningWorker::End.
  void Remove(const LearningHandover* handover, Deadline deadline);
  // Keeps this process's cells in the store from expiring. The store must live as long as the
  // process.
  void KeepStore(agree::CellStore* store);

  // Wakes the thread because there is something to propose. Lives as long as the process.
  Waker* waker() { return &waker_; }
  // An iteration of the program has ended (diapason_step).
  void Step() noexcept;
  // One call took `seconds` (diapason_report); false: such calls are not learned.
  bool Report(Collective collective, uint64_t bytes, double seconds) noexcept;
  // A collective is called; detects iterations in the order of the calls.
  void CallMade(uint64_t comm_id, int collective, uint64_t bytes) noexcept;

  // At process exit: gives the thread a moment to finish.
  static void StopAtExit() noexcept;

 private:
  LearningThread() : owner_(getpid()) {}
  void Run();
  void Start();
  void MarkAll(RewardSource source, double now) noexcept;

  const pid_t owner_;
  Waker waker_;
  pthread_mutex_t list_ = PTHREAD_MUTEX_INITIALIZER;
  std::vector<std::shared_ptr<LearningWorker>> workers_;  // guarded by list_
  bool running_ = false;                                  // guarded by list_
  std::atomic<agree::CellStore*> kept_{nullptr};
  std::atomic<bool> stop_{false};
  std::atomic<bool> stopped_{false};

  // Used by the thread only.
  double kept_at_ = 0;
  JobWatch watch_;

  pthread_mutex_t pattern_ = PTHREAD_MUTEX_INITIALIZER;
  learn::IterationFinder finder_;  // guarded by pattern_
};

}  // namespace diapason::plugin
