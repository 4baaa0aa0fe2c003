#include "agree/quiet_signal.h"

#include <pthread.h>

#include <cerrno>
#include <ctime>

namespace diapason::agree {

QuietSignal::QuietSignal(int signal) {
  sigemptyset(&quiet_);
  sigaddset(&quiet_, signal);
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, signal) == 1;
  pthread_sigmask(SIG_BLOCK, &quiet_, &before_);
}

QuietSignal::~QuietSignal() {
  const int error = errno;
  if (!was_pending_) {
    const timespec none{};
    while (sigtimedwait(&quiet_, nullptr, &none) == -1 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace diapason::agree
