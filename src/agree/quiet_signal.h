#pragma once

#include <csignal>

namespace diapason::agree {

// Keeps a signal that a system call of this thread raises from the process while in scope: SIGPIPE
// of a write to a lost connection, SIGXFSZ of a file beyond `ulimit -f`. Their usual effect is the
// end of the process, and the call's errno says the same. A signal that was pending before stays.
// Of one thread: made and destroyed by the thread whose calls it covers. Keeps errno.
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
