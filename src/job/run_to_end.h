#pragma once

#include <signal.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "process/spawn.h"

namespace diapason::job {

struct SupervisionOptions {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // all of it: "NAME=VALUE"
  // A terminal as standard input is given to a command in the foreground alone.
  int streams[3] = {process::kInherited, process::kInherited, process::kInherited};
  // Between a signal that was passed on and asks it to end, and SIGKILL; 0: no SIGKILL, for a
  // program may take its time to save its state.
  std::chrono::milliseconds grace{0};
  // The same after `limit` and `enough`.
  std::chrono::milliseconds limit_grace{30000};
  std::chrono::milliseconds limit{0};  // after which it is asked to end; 0: none
  int end_signal = SIGTERM;            // by which it is asked
  // Asked every `ask_every` (5 ms or more) while the command runs; true ends it as `limit` does.
  std::function<bool()> enough;
  std::chrono::milliseconds ask_every{250};
  // A descriptor of ours with what the command writes. `read` is called when there is something, to
  // the end of the command and what it has started; true: it has not taken everything yet. Output
  // in small pieces is left there for up to 20 ms.
  int watched = -1;
  std::function<bool()> read;
  // After a success, too, processes that made a session of their own are ended.
  bool end_all = false;
  // Sentences for the user. May be empty.
  std::function<void(const std::string&)> say;
};

// How a command has ended.
struct Supervised {
  int status = 0;       // as a shell reports it: 128 + signal; 126, 127: it could not be started
  bool started = true;  // false: `trouble` says why
  std::string trouble;
  int signal = 0;        // that killed it
  int asked_by = 0;      // a signal of ours that was passed on and asked it to end
  bool limited = false;  // it was asked to end by `limit` or `enough`
  bool killed = false;   // it had to be killed by us
};

// Starts a command in a session of its own and waits for its end, with everything it has started:
//
//   - SIGINT, SIGQUIT and SIGHUP go to its process group, as from a terminal; SIGTERM, SIGUSR1,
//     SIGUSR2 and SIGWINCH to its process. Ctrl-Z stops all its processes and this one, SIGCONT
//     continues them. A third SIGINT or SIGQUIT kills.
//   - Processes of its session that outlive it are ended. If it failed or was asked to end, so are
//     those that made a session of their own; otherwise these are left alone, unless `end_all`.
//   - If this process is killed, the command and its session are too.
//
// Fails if it could not be set up. REQUIRES: a process with one thread.
Result<Supervised> RunToEnd(const SupervisionOptions& options);

}  // namespace diapason::job
