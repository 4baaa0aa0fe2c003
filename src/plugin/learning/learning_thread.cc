#include "plugin/learning/learning_thread.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/mutex_lock.h"
#include "base/random.h"

namespace diapason::plugin {
namespace {

constexpr long kBusyPauseNs = 500000;     // while a context explores
constexpr long kQuietPauseNs = 20000000;  // while all is settled
constexpr long kIdlePauseNs = 500000000;  // while no communicator learns
constexpr double kKeepInterval = 60;
constexpr long kExitPauseNs = 1000000;
constexpr int kExitPauses = 200;
// A period of one call is not an iteration: the call's own time is the better reward.
constexpr size_t kShortestIteration = 2;

// Never deleted: calls may come, and the thread may run, until the process ends.
std::atomic<LearningThread*> g_learning_thread{nullptr};

__attribute__((destructor)) void LibraryEnds() { LearningThread::StopAtExit(); }

}  // namespace

LearningThread& LearningThread::Instance() {
  LearningThread* learning_thread = g_learning_thread.load(std::memory_order_acquire);
  if (learning_thread != nullptr && learning_thread->owner_ == getpid()) return *learning_thread;
  auto* fresh = new LearningThread();
  if (!g_learning_thread.compare_exchange_strong(learning_thread, fresh,
                                                 std::memory_order_acq_rel)) {
    delete fresh;
    return *learning_thread;
  }
  return *fresh;
}

// REQUIRES: list_ is held.
void LearningThread::Start() {
  if (running_) return;
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const auto run = [](void* self) -> void* {
    static_cast<LearningThread*>(self)->Run();
    return nullptr;
  };
  running_ = pthread_create(&thread, nullptr, run, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (running_) pthread_detach(thread);
}

void LearningThread::Add(std::shared_ptr<LearningHandover> handover) {
  auto worker = std::make_shared<LearningWorker>(std::move(handover));
  const MutexLock lock(&list_);
  workers_.push_back(std::move(worker));
  Start();
  waker_.Wake();
}

void LearningThread::KeepStore(agree::CellStore* store) {
  const MutexLock lock(&list_);
  kept_.store(store);
  Start();
}

void LearningThread::Remove(const LearningHandover* handover, Deadline deadline) {
  if (owner_ != getpid()) return;
  std::shared_ptr<LearningWorker> removed;
  {
    const MutexLock lock(&list_);
    const auto found = std::find_if(workers_.begin(), workers_.end(), [handover](const auto& one) {
      return &one->handover() == handover;
    });
    if (found == workers_.end()) return;
    removed = std::move(*found);
    workers_.erase(found);
  }
  removed->End(deadline);
}

void LearningThread::Run() {
  while (!stop_.load(std::memory_order_relaxed)) {
    bool busy = false;
    // Shared pointers, so that no worker is destroyed during its Poll. No lock that a call, or the
    // creation or end of another communicator needs, is held meanwhile.
    std::vector<std::shared_ptr<LearningWorker>> workers;
    try {
      const MutexLock lock(&list_);
      workers = workers_;
    } catch (...) {  // no memory: later
    }
    for (const auto& worker : workers) busy = worker->Poll(SteadySeconds(), &watch_) || busy;
    const double now = SteadySeconds();
    agree::CellStore* kept = kept_.load();
    if (kept != nullptr && now - kept_at_ > kKeepInterval) {
      kept_at_ = now;
      kept->KeepAlive(std::chrono::steady_clock::now() + agree::kUsualLimit);
    }
    const long pause = busy ? kBusyPauseNs : workers.empty() ? kIdlePauseNs : kQuietPauseNs;
    workers.clear();  // so that this thread keeps none alive while it sleeps
    waker_.Sleep(pause);
  }
  stopped_.store(true, std::memory_order_release);
}

void LearningThread::StopAtExit() noexcept {
  LearningThread* learning_thread = g_learning_thread.load(std::memory_order_acquire);
  if (learning_thread == nullptr || learning_thread->owner_ != getpid()) return;
  learning_thread->stop_.store(true, std::memory_order_relaxed);
  if (!learning_thread->running_) return;
  for (int i = 0; i < kExitPauses && !learning_thread->stopped_.load(std::memory_order_acquire);
       ++i) {
    const timespec pause{0, kExitPauseNs};
    nanosleep(&pause, nullptr);
  }
  if (!learning_thread->stopped_.load(std::memory_order_acquire)) return;
  // Programs often end without destroying their communicators.
  for (const auto& worker : learning_thread->workers_) {
    try {
      worker->Save();
    } catch (...) {
    }
  }
}

void LearningThread::MarkAll(RewardSource source, double now) noexcept {
  const MutexLock lock(&list_);
  for (const auto& worker : workers_) worker->handover().Mark(source, now);
}

void LearningThread::Step() noexcept { MarkAll(RewardSource::kStep, SteadySeconds()); }

bool LearningThread::Report(Collective collective, uint64_t bytes, double seconds) noexcept {
  const MutexLock lock(&list_);
  bool taken = false;
  for (const auto& worker : workers_) {
    taken = worker->handover().Report(collective, bytes, seconds) || taken;
  }
  return taken;
}

void LearningThread::CallMade(uint64_t comm_id, int collective, uint64_t bytes) noexcept {
  const double now = SteadySeconds();
  bool begins = false;
  try {
    const MutexLock lock(&pattern_);
    const uint64_t kind = MixBits(MixBits(comm_id ^ static_cast<uint64_t>(collective)) ^ bytes);
    begins = finder_.Call(kind, now) && finder_.period() >= kShortestIteration;
  } catch (...) {
  }
  if (begins) MarkAll(RewardSource::kPattern, now);
}

}  // namespace diapason::plugin
