#include "watch/perf.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/clock.h"
#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"

extern char** environ;

namespace diapason::watch {
namespace {

constexpr size_t kMostOutput = size_t{8} << 20;
constexpr size_t kMostLines = 20000;
constexpr double kReportSeconds = 60;  // reading symbols of large libraries takes time

std::string FindProgram(const Environment& environment, const std::string& name) {
  const std::string path = environment.Get("PATH").value_or("/usr/bin:/bin");
  for (const std::string_view folder : Split(path, ':')) {
    if (folder.empty()) continue;
    const std::string file = std::string(folder) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

// Reads available data; closes at the end.
void ReadSome(int* fd, std::string* text) {
  char block[16384];
  const ssize_t got = read(*fd, block, sizeof block);
  if (got > 0) {
    if (text->size() < kMostOutput) text->append(block, static_cast<size_t>(got));
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    close(*fd);
    *fd = -1;
  }
}

// A share such as "26.21% ".
bool ParsePercent(std::string_view text, double* share) {
  text = Trim(text);
  if (!text.ends_with("%")) return false;
  const std::string number(text.substr(0, text.size() - 1));
  char* end = nullptr;
  *share = std::strtod(number.c_str(), &end) / 100;
  return end != number.c_str() && *end == '\0' && *share >= 0 && *share <= 1;
}

std::string FirstLine(const std::string& text) {
  for (const std::string_view line : Split(text, '\n')) {
    if (!Trim(line).empty() && Trim(line) != "Error:")
      return std::string(Trim(line).substr(0, 300));
  }
  return "it says nothing";
}

Status NotPermitted(const RootFs& tree, pid_t pid, const std::string& said) {
  const std::string level = tree.Read("/proc/sys/kernel/perf_event_paranoid", 64).value_or("?");
  return Unavailable(Format(
      "perf record cannot sample process %d: %s (kernel.perf_event_paranoid is %s: with 2 or less "
      "a user may sample their own processes; `sudo sysctl kernel.perf_event_paranoid=1`, or run "
      "as root; in a container it also takes CAP_PERFMON)",
      static_cast<int>(pid), FirstLine(said).c_str(), level.c_str()));
}

}  // namespace

Result<ProgramOutput> RunProgram(const std::vector<std::string>& command, double limit_s) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0) return IoError("cannot make a pipe: " + ErrnoText(errno));
  if (pipe2(err, O_CLOEXEC) != 0) {
    close(out[0]);
    close(out[1]);
    return IoError("cannot make a pipe: " + ErrnoText(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(out[1]);
  close(err[1]);
  if (error != 0) {
    close(out[0]);
    close(err[0]);
    return IoError("cannot start " + command[0] + ": " + ErrnoText(error));
  }
  ProgramOutput output;
  const double deadline = SteadySeconds() + limit_s;
  bool late = false;
  while (out[0] >= 0 || err[0] >= 0) {
    pollfd polled[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
    const double left = deadline - SteadySeconds();
    if (left <= 0) {
      late = true;
      break;
    }
    (void)poll(polled, 2, static_cast<int>(std::min(left, 1.0) * 1000) + 1);
    if (out[0] >= 0 && polled[0].revents != 0) ReadSome(&out[0], &output.out);
    if (err[0] >= 0 && polled[1].revents != 0) ReadSome(&err[0], &output.err);
  }
  if (late) kill(-child, SIGKILL);
  if (out[0] >= 0) close(out[0]);
  if (err[0] >= 0) close(err[0]);
  int status = 0;
  // A program that has closed its output and does not exit gets no more time.
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (SteadySeconds() > deadline) kill(-child, SIGKILL);
    (void)poll(nullptr, 0, 5);
  }
  if (late) return TimedOut(Format("%s took longer than %.0f s", command[0].c_str(), limit_s));
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

Profile ParsePerfReport(std::string_view text) {
  Profile profile;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (Trim(line).empty()) continue;
    if (line[0] == '#') {
      constexpr std::string_view kSamples = "# Samples: ";
      if (line.starts_with(kSamples)) {
        // "145  of event", "1K of event": the latter is precise enough.
        const std::string_view number = line.substr(kSamples.size());
        const size_t digits = number.find_first_not_of("0123456789");
        uint64_t count = 0;
        if (ParseUnsigned(number.substr(0, digits), &count) && count < (uint64_t{1} << 40)) {
          const char unit = digits < number.size() ? number[digits] : ' ';
          profile.samples += count * (unit == 'K' ? 1000 : unit == 'M' ? 1000000 : 1);
        }
      }
      continue;
    }
    const std::vector<std::string_view> cells = Split(line, '\t');
    ProfileLine row;
    const std::string_view thread = cells.size() < 4 ? std::string_view() : Trim(cells[1]);
    const size_t colon = thread.find(':');
    uint64_t tid = 0;
    if (cells.size() < 4 || !ParsePercent(cells[0], &row.share) ||
        colon == std::string_view::npos || !ParseUnsigned(Trim(thread.substr(0, colon)), &tid) ||
        tid > INT32_MAX || profile.lines.size() == kMostLines) {
      ++profile.damaged_lines;
      continue;
    }
    row.tid = static_cast<pid_t>(tid);
    row.thread = std::string(thread.substr(colon + 1));
    row.object = std::string(Trim(cells[2]));
    std::string_view symbol = Trim(cells[3]);
    if (symbol.starts_with("[") && symbol.size() > 4) symbol.remove_prefix(4);  // "[.] ", "[k] "
    row.symbol = std::string(symbol);
    profile.lines.push_back(std::move(row));
  }
  std::stable_sort(profile.lines.begin(), profile.lines.end(),
                   [](const ProfileLine& a, const ProfileLine& b) { return a.share > b.share; });
  return profile;
}

Result<Profile> ProfileProcess(const RootFs& tree, const Environment& environment, pid_t pid,
                               double seconds) {
  const std::string perf = FindProgram(environment, "perf");
  if (perf.empty()) {
    return NotFound(
        "there is no perf in the PATH; it comes with the kernel's tools (linux-perf, "
        "linux-tools-$(uname -r), perf)");
  }
  TemporaryFile file;
  if (Status created = file.Create("perf"); !created.ok()) return created;
  const Result<ProgramOutput> recorded =
      RunProgram({perf, "record", "-q", "-F", "99", "-g", "-o", file.path(), "-p",
                  std::to_string(pid), "--", "sleep", Format("%.3f", seconds)},
                 seconds + kReportSeconds);
  unlink((file.path() + ".old").c_str());  // perf keeps an earlier file under this name
  if (!recorded.ok()) return recorded.status();
  if (recorded.value().status != 0) return NotPermitted(tree, pid, recorded.value().err);
  const Result<ProgramOutput> report =
      RunProgram({perf, "report", "--stdio", "-i", file.path(), "--no-children", "-g", "none", "-s",
                  "pid,dso,symbol", "-t", "\t"},
                 kReportSeconds);
  if (!report.ok()) return report.status();
  if (report.value().status != 0) {
    return Unavailable("perf report failed: " + FirstLine(report.value().err));
  }
  return ParsePerfReport(report.value().out);
}

}  // namespace diapason::watch
