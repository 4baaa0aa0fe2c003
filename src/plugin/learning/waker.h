#pragma once

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "base/mutex_lock.h"

namespace diapason::plugin {

// Ends the pause of a thread early. Owned by the thread that sleeps; others only call Wake.
class Waker {
 public:
  Waker() : process_(getpid()) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&wake_, &monotonic);
    pthread_condattr_destroy(&monotonic);
  }

  // Any thread. Takes no lock: a signal that arrives just before the thread sleeps is lost, and the
  // thread then wakes after its pause. Does nothing in a forked child, where no thread sleeps.
  void Wake() noexcept {
    if (process_ != getpid()) return;
    wanted_.store(true, std::memory_order_relaxed);
    pthread_cond_signal(&wake_);
  }
  // The owner: sleeps for less than a second, or until Wake is or was called.
  void Sleep(long nanoseconds) noexcept {
    if (wanted_.exchange(false, std::memory_order_relaxed)) return;
    timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += nanoseconds;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    const MutexLock lock(&mutex_);
    if (!wanted_.exchange(false, std::memory_order_relaxed)) {
      pthread_cond_timedwait(&wake_, &mutex_, &until);
      wanted_.store(false, std::memory_order_relaxed);
    }
  }

 private:
  const pid_t process_;
  std::atomic<bool> wanted_{false};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_;  // against the monotonic clock
};

}  // namespace diapason::plugin
