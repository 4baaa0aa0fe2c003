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
constexpr long kRemovePauseNs = 1000000;
constexpr double kKeepInterval = 60;
constexpr double kFreezeInterval = 1;
constexpr long kExitPauseNs = 1000000;
constexpr int kExitPauses = 200;
// A period of one call is not an iteration: the call's own time is the better reward.
constexpr size_t kShortestIteration = 2;

// Never deleted: calls may come, and the thread may run, until the process ends.
std::atomic<LearningThread*> g_learning_thread{nullptr};

void Pause(long nanoseconds) {
  const timespec pause{0, nanoseconds};
  nanosleep(&pause, nullptr);
}

__attribute__((destructor)) void LibraryEnds() { LearningThread::StopAtExit(); }

}  // namespace

LearningThread::LearningThread() : owner_(getpid()) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&wake_, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

// Takes no lock: a signal that arrives just before the thread sleeps is lost, and the thread then
// wakes after its pause.
void LearningThread::Wake() noexcept {
  wanted_.store(true, std::memory_order_relaxed);
  pthread_cond_signal(&wake_);
}

void LearningThread::Sleep(long nanoseconds) noexcept {
  if (wanted_.exchange(false, std::memory_order_relaxed)) return;
  timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += nanoseconds;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  const MutexLock lock(&sleeping_);
  if (!wanted_.exchange(false, std::memory_order_relaxed)) {
    pthread_cond_timedwait(&wake_, &sleeping_, &until);
    wanted_.store(false, std::memory_order_relaxed);
  }
}

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
  running_ = pthread_create(&thread, nullptr, RunThread, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (running_) pthread_detach(thread);
}

void LearningThread::Add(std::shared_ptr<Learning> learning) {
  const MutexLock lock(&list_);
  learnings_.push_back(std::move(learning));
  Start();
  Wake();
}

void LearningThread::KeepStore(agree::CellStore* store) {
  const MutexLock lock(&list_);
  kept_.store(store);
  Start();
}

void LearningThread::Remove(Learning* learning, Deadline deadline) {
  if (owner_ != getpid()) return;
  std::shared_ptr<Learning> removed;
  {
    const MutexLock lock(&list_);
    const auto found = std::find_if(learnings_.begin(), learnings_.end(),
                                    [learning](const auto& one) { return one.get() == learning; });
    if (found == learnings_.end()) return;
    removed = std::move(*found);
    learnings_.erase(found);
  }
  // From now on the thread abandons its work on this learning as soon as it can; the thread or this
  // function finishes it, whichever gets the lock first.
  removed->finish_wanted = true;
  while (pthread_mutex_trylock(&removed->poll_mutex) != 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      removed->BecomeLate();
      return;
    }
    Pause(kRemovePauseNs);
  }
  if (removed->finish_wanted.exchange(false)) removed->Finish(/*forget=*/true, deadline);
  // Here, while the communicator's GPU context still exists.
  removed->DropEvents();
  pthread_mutex_unlock(&removed->poll_mutex);
}

bool LearningThread::Frozen(agree::CellStore* store, const std::string& file, double now) {
  if (now - froze_at_ < kFreezeInterval) return frozen_;
  froze_at_ = now;
  if (freeze_log_ == nullptr) freeze_log_ = std::make_unique<agree::FreezeLog>(store);
  // On an error the state stays as it was.
  (void)freeze_log_->Look();
  frozen_ = freeze_log_->frozen() || (!file.empty() && access(file.c_str(), F_OK) == 0);
  return frozen_;
}

void* LearningThread::RunThread(void* self) {
  static_cast<LearningThread*>(self)->Run();
  return nullptr;
}

bool LearningThread::PollOne(Learning* learning, double now) noexcept {
  const MutexLock lock(&learning->poll_mutex);
  bool busy = false;
  try {
    // It may have been finished since the list was copied.
    if (learning->finished()) return false;
    if (!learning->finish_wanted) busy = learning->Poll(now);
    if (learning->finish_wanted.exchange(false)) {
      learning->Finish(/*forget=*/true, std::chrono::steady_clock::now() + agree::kUsualLimit);
    }
  } catch (...) {
    // Nothing was proposed, so all ranks hold the current choice.
  }
  return busy;
}

void LearningThread::Run() {
  while (!stop_.load(std::memory_order_relaxed)) {
    bool busy = false;
    // Shared pointers, so that no learning is destroyed during its Poll. No lock that a call, or
    // the creation or end of another communicator needs, is held meanwhile.
    std::vector<std::shared_ptr<Learning>> learnings;
    try {
      const MutexLock lock(&list_);
      learnings = learnings_;
    } catch (...) {  // no memory: later
    }
    for (const auto& learning : learnings) busy = PollOne(learning.get(), SteadySeconds()) || busy;
    const double now = SteadySeconds();
    agree::CellStore* kept = kept_.load();
    if (kept != nullptr && now - kept_at_ > kKeepInterval) {
      kept_at_ = now;
      kept->KeepAlive(std::chrono::steady_clock::now() + agree::kUsualLimit);
    }
    const long pause = busy ? kBusyPauseNs : learnings.empty() ? kIdlePauseNs : kQuietPauseNs;
    learnings.clear();  // so that this thread keeps none alive while it sleeps
    Sleep(pause);
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
    Pause(kExitPauseNs);
  }
  if (!learning_thread->stopped_.load(std::memory_order_acquire)) return;
  // Programs often end without destroying their communicators.
  for (const auto& learning : learning_thread->learnings_) {
    try {
      learning->Finish(/*forget=*/false, std::chrono::steady_clock::now());
    } catch (...) {
    }
  }
}

void LearningThread::MarkAll(RewardSource source, double now) noexcept {
  const MutexLock lock(&list_);
  for (const auto& learning : learnings_) learning->Mark(source, now);
}

void LearningThread::Step() noexcept { MarkAll(RewardSource::kStep, SteadySeconds()); }

bool LearningThread::Report(Collective collective, uint64_t bytes, double seconds) noexcept {
  const MutexLock lock(&list_);
  bool taken = false;
  for (const auto& learning : learnings_) {
    taken = learning->Report(collective, bytes, seconds) || taken;
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
