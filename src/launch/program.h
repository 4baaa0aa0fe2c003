#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace diapason::launch {

// Another program, spoken to line by line. It gets a process group of its own, so that a Ctrl-C at
// the terminal reaches only us, and is killed by the kernel if we are.
class Program {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // `command[0]` is looked for in PATH. `environment` is added to our own; an empty value removes.
  static Result<std::unique_ptr<Program>> Start(
      const std::vector<std::string>& command,
      const std::vector<std::pair<std::string, std::string>>& environment = {});
  // Ends it: asks, then kills.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Status WriteLine(const std::string& line);
  // The next line of its standard output, without the line feed. kTimeout at the deadline,
  // kPeerLost when there will be no more.
  Result<std::string> ReadLine(Deadline deadline);
  // Everything up to its end, at most `most` bytes.
  Result<std::string> ReadAll(size_t most, Deadline deadline);

  // No more input will come. Then its exit status, 128 + signal if one killed it; kTimeout if it
  // does not end.
  Result<int> Finish(Deadline deadline);
  // Asks it to end (SIGTERM), waits a moment, kills it and everything in its group.
  void Stop();

  // The last lines it wrote to standard error, for people.
  std::string ErrorTail();

 private:
  Program(pid_t pid, int in, int out, int err) : pid_(pid), in_(in), out_(out), err_(err) {}

  // Takes what there is of standard output and error. False at the deadline.
  bool Pump(Deadline deadline);
  void TakeErrors(const char* text, size_t size);
  bool Reap();

  pid_t pid_;
  int in_;
  int out_;
  int err_;
  bool ended_ = false;
  int status_ = 0;
  std::string text_;     // of standard output, not yet taken
  std::string partial_;  // the last line of standard error, not yet whole
  std::deque<std::string> errors_;
};

}  // namespace diapason::launch
