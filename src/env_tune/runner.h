#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/status.h"
#include "env_tune/experiment.h"
#include "process/child.h"

namespace diapason::env_tune {

// One run of a command.
struct CommandRun {
  int status = 0;  // its exit status; 128 + signal where one ended it
  bool timed_out = false;
  bool interrupted = false;  // because of `stop`
  double wall_s = 0;
  double cpu_s = 0;   // of it and all descendants that were waited for
  double memory = 0;  // bytes, of the largest of them
  process::BoundedText out;
  process::BoundedText err;
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
