#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace diapason::process {

// The content of /proc/PID/stat, or of /proc/PID/task/TID/stat.
struct ProcessStat {
  std::string name;  // may contain anything, blanks and parentheses too
  char state = '?';
  std::vector<uint64_t> numbers;  // from field 4 on; 0 for a negative one

  // As proc(5) counts the fields; 0 for one that is not there.
  uint64_t Number(size_t field) const {
    return field >= 4 && field - 4 < numbers.size() ? numbers[field - 4] : 0;
  }
};
// Nothing for a text that is damaged or has less than 24 fields.
std::optional<ProcessStat> ParseStat(std::string_view text);

// A process that is alive, and the process group it is in.
struct SessionProcess {
  pid_t pid;
  pid_t group;
};
// Every process alive in these sessions (sorted), whatever groups they have made, from /proc.
std::vector<SessionProcess> MembersOf(const std::vector<pid_t>& sessions);
// Sends a signal to every group there, 0 to send none; returns how many processes were seen.
size_t SignalSessions(const std::vector<pid_t>& sessions, int signal);

// A process below another one, at any depth.
struct Descendant {
  pid_t pid;
  pid_t parent;
  pid_t group;
  pid_t session;
  bool ended;  // a zombie, which its parent has not reaped
};
// Everything below `root`, from /proc, without the branches that begin at `except` (0: none). A
// process whose parent has ended is found only if `root` is its subreaper (prctl).
std::vector<Descendant> DescendantsOf(pid_t root, pid_t except);

}  // namespace diapason::process
