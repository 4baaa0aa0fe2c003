#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/root_fs.h"
#include "base/status.h"

namespace diapason::watch {

// Another process that has the other end of a process's output.
struct OutputHolder {
  pid_t pid = 0;
  std::string name;                // "tee", "slurmstepd"
  std::vector<std::string> files;  // regular files it has open for writing: the output may go there
};

// Where a process's standard output goes: NCCL prints dumps there, with printf.
struct OutputPlace {
  enum class Kind : uint8_t { kFile, kPipe, kTerminal, kNowhere, kOther };
  Kind kind = Kind::kOther;
  std::string name;                   // "/home/u/job.log", "pipe:[123]", "/dev/pts/3"
  std::vector<OutputHolder> readers;  // of a pipe
};
OutputPlace OutputOf(const RootFs& tree, pid_t pid);

// A process that can be asked for the state of its proxy.
struct DumpTarget {
  pid_t pid = 0;
  uint64_t start_ticks = 0;
  int signal = 0;
  // The thread to signal, so that it does not change the lists while they are printed: the last
  // started progress thread, whose lists NCCL prints. 0: threads have no names, and any of them may
  // get the signal.
  pid_t thread = 0;
  std::string thread_name;
  OutputPlace output;
};

// Whether and how a process can be asked. Fails, with the reason and advice, unless it was started
// with NCCL_PROXY_DUMP_SIGNAL and has a handler for that signal: without one the signal would end
// the process.
Result<DumpTarget> FindDumpTarget(const RootFs& tree, pid_t pid);

struct DumpAnswer {
  std::string text;  // text added to the file after the signal
  bool complete = false;
  size_t asked = 0;    // signals that were sent
  bool ended = false;  // the process has ended meanwhile
};
struct DumpWait {
  double timeout_s = 5;
  // Repeat until the process's buffer of standard output is flushed (at most 2000 times).
  bool fill = false;
};
// Sends the signal and waits for a complete dump at the end of `file`; with "" it does not wait.
// Fails if the pid belongs to another process by now, the signal is not permitted, or the file
// cannot be read.
Result<DumpAnswer> AskForDump(const RootFs& tree, const DumpTarget& target, const std::string& file,
                              const DumpWait& wait);

// Sleeps for `seconds`, also if signals arrive.
void Pause(double seconds);

}  // namespace diapason::watch
