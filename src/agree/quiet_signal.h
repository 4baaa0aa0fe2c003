#pragma once

#include <csignal>

namespace diapason::agree {

// Suppresses a signal that a system call of this thread raises while in scope: SIGPIPE of a write
// to a lost connection, SIGXFSZ of a file beyond `ulimit -f`. By default they end the process, and
// the call's errno says the same. A signal that was already pending stays pending. The thread whose
// calls it covers must construct and destroy it. Preserves errno.
class QuietSignal {
 public:
  explicit QuietSignal(int signal);
  ~QuietSignal();
  QuietSignal(const QuietSignal&) = delete;
  QuietSignal& operator=(const QuietSignal&) = delete;

 private:
  sigset_t quiet_;
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace diapason::agree
