#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace diapason::launch {

class LaunchSecret;

// A file descriptor that is closed in the end.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.Release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { Close(); }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  int Release();
  void Close();

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> MakePipe();

// "SIGTERM"; "signal 40" for those without a name.
std::string SignalName(int signal);

// What a shell returns for a program that is not there (127) or cannot be executed (126).
int StatusOfStartError(int error);

// A process that is alive, and the process group it is in.
struct SessionProcess {
  pid_t pid;
  pid_t group;
};
// Everybody alive in these sessions (sorted), whatever groups they have made, from /proc.
std::vector<SessionProcess> MembersOf(const std::vector<pid_t>& sessions);
// Sends a signal to every group there; returns how many processes were seen.
size_t SignalSessions(const std::vector<pid_t>& sessions, int signal);

// The signals of the launcher: those it acts on come through fd() and interrupt nothing. What was
// ignored when it was started (nohup) stays ignored, for it and for the ranks.
class Signals {
 public:
  Status Take();
  int fd() const { return fd_.get(); }
  // In a new process: as they were.
  void Restore() const;

 private:
  Fd fd_;
  sigset_t before_{};
  struct sigaction pipe_before_ {};
};

// One process of a job, about to be started.
struct RankStart {
  int rank = 0;
  std::vector<std::string> environment;
  int in = -1;  // -1: the launcher's own
  int out = -1;
  int err = -1;
};

// Why a rank's program did not start.
struct StartFailure {
  int rank;
  int error;  // errno
};

// Starts ranks, each in a session of its own: no terminal, so that nothing there can stop it, and
// everything it starts can be found and ended. A rank ends with the launcher even when that is
// killed with SIGKILL: the kernel ends the rank's process, and a keeper process what that had
// started.
//
// REQUIRES: a process with one thread.
class Starter {
 public:
  // `secret` may be null; the keeper removes it.
  Starter(std::vector<std::string> command, int ranks, const Signals* signals,
          std::shared_ptr<const LaunchSecret> secret);
  ~Starter();
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  // Before the first rank. Also allows this process, not the ranks, the open files it may need.
  Status Prepare();
  Result<pid_t> Start(const RankStart& start);
  // Readable when a program could not be started.
  int failure_fd() const { return failures_.read.get(); }
  bool TakeFailure(StartFailure* failure);
  // The keeper lets go: nothing of the job is left.
  void Finish();
  pid_t keeper() const { return keeper_; }

 private:
  [[noreturn]] void Become(const RankStart& start, char* const* environment);
  [[noreturn]] void Keep();

  std::vector<std::string> command_;
  std::vector<char*> arguments_;
  int ranks_;
  const Signals* signals_;
  std::shared_ptr<const LaunchSecret> secret_;
  pid_t launcher_;
  pid_t keeper_ = -1;
  Pipe life_;  // its end tells the keeper that the launcher is gone
  Pipe failures_;
  std::atomic<pid_t>* sessions_ = nullptr;  // shared with the keeper; each rank writes its own
  rlimit files_before_{};
};

}  // namespace diapason::launch
