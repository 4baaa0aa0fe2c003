#include "plugin/learning/waker.h"

#include <time.h>
#include <unistd.h>

#include "base/mutex_lock.h"

namespace diapason::plugin {

Waker::Waker() : process_(getpid()) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&wake_, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

void Waker::Wake() noexcept {
  if (process_ != getpid()) return;
  wanted_.store(true, std::memory_order_relaxed);
  pthread_cond_signal(&wake_);
}

void Waker::Sleep(long nanoseconds) noexcept {
  if (wanted_.exchange(false, std::memory_order_relaxed)) return;
  timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += nanoseconds;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  const MutexLock lock(&mutex_);
  if (!wanted_.exchange(false, std::memory_order_relaxed)) {
    pthread_cond_timedwait(&wake_, &mutex_, &until);
    wanted_.store(false, std::memory_order_relaxed);
  }
}

}  // namespace diapason::plugin
