#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/root_fs.h"
#include "base/status.h"

namespace diapason::watch {

// Who else has the other end of a process's output.
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

// A process that may be asked for the state of its proxy.
struct DumpTarget {
  pid_t pid = 0;
  uint64_t start_ticks = 0;
  int signal = 0;
  // The thread that is asked, so that it does not change the lists while they are printed: the
  // progress thread that started last, which is the one that NCCL prints. 0: threads have no names,
  // and any of them may get the signal.
  pid_t thread = 0;
  std::string thread_name;
  OutputPlace output;
};

// Whether and how a process may be asked. An error, which says why and what to do, unless it was
// started with NCCL_PROXY_DUMP_SIGNAL and has a handler for that signal: without one the signal
// would end the process.
Result<DumpTarget> FindDumpTarget(const RootFs& tree, pid_t pid);

struct DumpAnswer {
  std::string text;  // what came to the file after the signal
  bool complete = false;
  size_t asked = 0;    // signals that were sent
  bool ended = false;  // the process has ended meanwhile
};
struct DumpWait {
  double timeout_s = 5;
  // Ask again and again until the process's buffer of standard output runs over (at most 2000
  // times).
  bool fill = false;
};
// Sends the signal and waits for a whole dump at the end of `file`; with "" it does not wait. An
// error when the process is another one meanwhile, the signal may not be sent, or the file cannot
// be read.
Result<DumpAnswer> AskForDump(const RootFs& tree, const DumpTarget& target, const std::string& file,
                              const DumpWait& wait);

// Does nothing for so long, signals or not.
void Pause(double seconds);

}  // namespace diapason::watch
