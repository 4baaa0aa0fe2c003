#pragma once

namespace diapason::job_tune {

// Notes that the user wants to end while no command runs: job::RunToEnd takes the signals of the
// terminal and of batch systems only while one does. SIGINT, SIGTERM, SIGHUP and SIGQUIT end this
// process no more as long as the object lives; what is ignored (nohup) stays ignored. The command
// is started with the signals as they were. At most one object at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // The signal that arrived last; 0: none.
  static int signal();
};

}  // namespace diapason::job_tune
