#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/status.h"
#include "env_tune/experiment.h"

namespace diapason::env_tune {

// What is kept of a program's output: its beginning and its end, at most a few MiB together.
class BoundedText {
 public:
  explicit BoundedText(size_t half = size_t{2} << 20) : half_(half) {}
  void Add(const char* text, size_t size);
  // With a line "..." where something is missing.
  std::string Text() const;
  // The last lines, for errors.
  std::string Tail(size_t lines) const;

 private:
  size_t half_;
  std::string head_;
  std::string tail_;  // the last `half_` bytes, or up to twice as many
  bool cut_ = false;
};

// One run of a command.
struct CommandRun {
  int status = 0;  // its exit status; 128 + signal where one ended it
  bool timed_out = false;
  bool interrupted = false;  // because of `stop`
  double wall_s = 0;
  double cpu_s = 0;   // of it and all descendants that were waited for
  double memory = 0;  // bytes, of the largest of them
  BoundedText out;
  BoundedText err;
};

struct CommandOptions {
  double timeout_s = 0;                     // 0: none
  bool show = false;                        // its output also goes to our standard error
  const std::atomic<bool>* stop = nullptr;  // ends the run when it becomes true
};

// Runs a command with variables on top of our own and waits for its end. It is the leader of a new
// session without a terminal and without input; at the time limit, or when stopped, everything in
// the session is asked to end and two seconds later killed, and so is what it leaves behind when it
// fails. It does not outlive us. An error: it could not be started.
Result<CommandRun> RunCommand(const std::vector<std::string>& command, const EnvVars& settings,
                              const CommandOptions& options);

}  // namespace diapason::env_tune
