#include "plugin/steward.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/mutex_lock.h"
#include "base/random.h"
#include "base/wall_time.h"

namespace diapason::plugin {
namespace {

constexpr long kBusyPauseNs = 500000;     // while something is being tried
constexpr long kQuietPauseNs = 20000000;  // while all is settled
constexpr long kExitPauseNs = 1000000;
constexpr int kExitPauses = 200;
// A period of one call is no iteration: such a program is better served by the call's own time.
constexpr size_t kShortestIteration = 2;

// Never deleted: calls and the thread may come as late as they like.
std::atomic<Steward*> g_steward{nullptr};

void Pause(long nanoseconds) {
  const timespec pause{0, nanoseconds};
  nanosleep(&pause, nullptr);
}

__attribute__((destructor)) void LibraryEnds() { Steward::StopAtExit(); }

}  // namespace

Steward::Steward() : owner_(getpid()) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&wake_, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

// No lock: a signal that comes while the thread is just about to sleep is lost, and it wakes by
// itself a little later.
void Steward::Wake() noexcept {
  wanted_.store(true, std::memory_order_relaxed);
  pthread_cond_signal(&wake_);
}

void Steward::Sleep(long nanoseconds) noexcept {
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

Steward& Steward::Instance() {
  Steward* steward = g_steward.load(std::memory_order_acquire);
  if (steward != nullptr && steward->owner_ == getpid()) return *steward;
  auto* fresh = new Steward();
  if (!g_steward.compare_exchange_strong(steward, fresh, std::memory_order_acq_rel)) {
    delete fresh;
    return *steward;
  }
  return *fresh;
}

void Steward::Add(Learning* learning) {
  const MutexLock tending(&tending_);
  const MutexLock lock(&list_);
  learnings_.push_back(learning);
  if (running_) return;
  // The host's signals are not ours to take.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  running_ = pthread_create(&thread, nullptr, RunThread, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (running_) pthread_detach(thread);
}

void Steward::Remove(Learning* learning) {
  if (owner_ != getpid()) return;
  const MutexLock tending(&tending_);
  const MutexLock lock(&list_);
  std::erase(learnings_, learning);
}

void* Steward::RunThread(void* self) {
  static_cast<Steward*>(self)->Run();
  return nullptr;
}

void Steward::Run() {
  while (!stop_.load(std::memory_order_relaxed)) {
    bool busy = false;
    {
      const MutexLock tending(&tending_);
      const double now = SteadySeconds();
      for (Learning* learning : learnings_) {
        try {
          busy = learning->Tend(now) || busy;
        } catch (...) {
          // Nothing was proposed, so all ranks hold.
        }
      }
    }
    Sleep(busy ? kBusyPauseNs : kQuietPauseNs);
  }
  stopped_.store(true, std::memory_order_release);
}

void Steward::StopAtExit() noexcept {
  Steward* steward = g_steward.load(std::memory_order_acquire);
  if (steward == nullptr || steward->owner_ != getpid()) return;
  steward->stop_.store(true, std::memory_order_relaxed);
  if (!steward->running_) return;
  for (int i = 0; i < kExitPauses && !steward->stopped_.load(std::memory_order_acquire); ++i) {
    Pause(kExitPauseNs);
  }
  if (!steward->stopped_.load(std::memory_order_acquire)) return;
  // Programs often end without destroying their communicators.
  for (Learning* learning : steward->learnings_) {
    try {
      learning->Finish(/*forget=*/false);
    } catch (...) {
    }
  }
}

void Steward::MarkAll(RewardSource source, double now) noexcept {
  const MutexLock lock(&list_);
  for (Learning* learning : learnings_) learning->Mark(source, now);
}

void Steward::Step() noexcept { MarkAll(RewardSource::kStep, SteadySeconds()); }

bool Steward::Report(Collective collective, uint64_t bytes, double seconds) noexcept {
  const MutexLock lock(&list_);
  bool taken = false;
  for (Learning* learning : learnings_) {
    taken = learning->Report(collective, bytes, seconds) || taken;
  }
  return taken;
}

void Steward::CallMade(uint64_t comm_id, int collective, uint64_t bytes) noexcept {
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
