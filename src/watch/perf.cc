#include "watch/perf.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/clock.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "process/child.h"

namespace diapason::watch {
namespace {

constexpr size_t kMostOutput = size_t{4} << 20;  // of its beginning, and of its end
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
      "perf record cannot sample process {}: {} (kernel.perf_event_paranoid is {}: with 2 or less "
      "a user may sample their own processes; `sudo sysctl kernel.perf_event_paranoid=1`, or run "
      "as root; in a container it also takes CAP_PERFMON)",
      static_cast<int>(pid), FirstLine(said), level));
}

}  // namespace

Result<ProgramOutput> RunProgram(const std::vector<std::string>& command, double limit_s) {
  process::BoundedText out(kMostOutput);
  process::BoundedText err(kMostOutput);
  process::ChildOptions options;
  options.command = command;
  options.out = [&out](std::string_view text) { out.Add(text); };
  options.err = [&err](std::string_view text) { err.Add(text); };
  const Deadline deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(std::llround(limit_s * 1e3));
  ASSIGN_OR_RETURN(const std::unique_ptr<process::Child> child,
                   process::Child::Start(std::move(options)));
  process::Child& program = *child;
  while (!program.ended() || program.out_open() || program.err_open()) {
    if (program.Poll(deadline)) continue;
    program.Stop(std::chrono::milliseconds(0));
    return TimedOut(Format("{} took longer than {:.0f} s", command[0], limit_s));
  }
  return ProgramOutput{program.status(), out.Text(), err.Text()};
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
  RETURN_IF_ERROR(file.Create("perf"));
  const Result<ProgramOutput> recorded =
      RunProgram({perf, "record", "-q", "-F", "99", "-g", "-o", file.path(), "-p",
                  std::to_string(pid), "--", "sleep", Format("{:.3f}", seconds)},
                 seconds + kReportSeconds);
  unlink((file.path() + ".old").c_str());  // perf keeps an earlier file under this name
  if (!recorded.ok()) return recorded.status();
  if (recorded.value().status != 0) return NotPermitted(tree, pid, recorded.value().err);
  ASSIGN_OR_RETURN(const ProgramOutput report,
                   RunProgram({perf, "report", "--stdio", "-i", file.path(), "--no-children", "-g",
                               "none", "-s", "pid,dso,symbol", "-t", "\t"},
                              kReportSeconds));
  if (report.status != 0) {
    return Unavailable("perf report failed: " + FirstLine(report.err));
  }
  return ParsePerfReport(report.out);
}

}  // namespace diapason::watch
