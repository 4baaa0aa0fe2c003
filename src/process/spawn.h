#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace diapason::process {

// Where a standard stream of a new process goes, instead of to a descriptor of ours.
constexpr int kInherited = -1;
constexpr int kNowhere = -2;  // /dev/null

struct SpawnOptions {
  std::vector<std::string> command;      // command[0] is looked for in the PATH of `environment`
  std::vector<std::string> environment;  // all of it: "NAME=VALUE"
  int streams[3] = {kNowhere, kInherited, kInherited};
  // Runs in the new process before the program: system calls only. Without it, the signals that a
  // program of ours may ignore or block are as a shell leaves them.
  std::function<void()> prepare;
  // For the program to be read and executed: a file system that does not answer takes forever.
  std::chrono::milliseconds exec_limit = std::chrono::minutes(1);
};

// Starts a program as the leader of a new session: without a terminal, so that a Ctrl-C there
// reaches only us, and with everything it starts to be found by SignalSessions. The kernel kills it
// when the calling thread ends. It inherits the standard streams and no other descriptor that is
// closed by exec. The caller has to reap it.
//
// kUnavailable: the program cannot be executed, and `*exec_error`, if given, says why; no process
// is left. It is 0 for every other error. kTimeout: it was not executed within `exec_limit`; the
// new process is killed, and reaped if it dies at once (one that waits for a disk cannot die).
Result<pid_t> Spawn(const SpawnOptions& options, int* exec_error = nullptr);

// Our own environment with changes: a variable without a value is removed.
using EnvironmentChanges = std::map<std::string, std::optional<std::string>>;
std::vector<std::string> ChangedEnvironment(const EnvironmentChanges& changes);

}  // namespace diapason::process
