#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>

namespace diapason::plugin {

// Ends the pause of a thread early. Owned by the thread that sleeps; others only call Wake.
class Waker {
 public:
  Waker();

  // Any thread. Takes no lock: a signal that arrives just before the thread sleeps is lost, and the
  // thread then wakes after its pause. Does nothing in a forked child, where no thread sleeps.
  void Wake() noexcept;
  // The owner: sleeps for less than a second, or until Wake is or was called.
  void Sleep(long nanoseconds) noexcept;

 private:
  const pid_t process_;
  std::atomic<bool> wanted_{false};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_;  // against the monotonic clock
};

}  // namespace diapason::plugin
