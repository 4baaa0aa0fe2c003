#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/status.h"
#include "process/spawn.h"

namespace diapason::launch {

class LaunchSecret;

// "SIGTERM"; "signal 40" for those without a name.
std::string SignalName(int signal);

// The signals of the launcher: those it acts on come through fd() and interrupt nothing. What was
// ignored when it was started (nohup) stays ignored, for it and for the ranks.
class Signals {
 public:
  Status Take();
  int fd() const { return fd_.get(); }
  // In a new process: as they were.
  void Restore() const;

 private:
  Descriptor fd_;
  sigset_t before_{};
  struct sigaction pipe_before_ {};
};

// Starts ranks, each in a session of its own. A rank ends with the launcher even when that is
// killed with SIGKILL: the kernel ends the rank's process, and a keeper process what that had
// started.
//
// REQUIRES: a process with one thread.
class Starter {
 public:
  // `secret` may be null; the keeper removes it.
  Starter(int ranks, const Signals* signals, std::shared_ptr<const LaunchSecret> secret)
      : ranks_(ranks), signals_(signals), secret_(std::move(secret)) {}
  ~Starter();
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  // Before the first rank. Also allows this process, not the ranks, the open files it may need.
  Status Prepare();
  // As process::Spawn does; `options.prepare` is set here.
  Result<pid_t> Start(int rank, process::SpawnOptions options, int* exec_error);
  // The keeper lets go: nothing of the job is left.
  void Finish();
  pid_t keeper() const { return keeper_; }

 private:
  [[noreturn]] void Keep();

  int ranks_;
  const Signals* signals_;
  std::shared_ptr<const LaunchSecret> secret_;
  pid_t keeper_ = -1;
  Pipe life_;                               // its end tells the keeper that the launcher is gone
  std::atomic<pid_t>* sessions_ = nullptr;  // shared with the keeper; each rank writes its own
  rlimit files_before_{};
  bool raised_ = false;
};

}  // namespace diapason::launch
