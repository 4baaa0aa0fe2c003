#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/launch_environment.h"
#include "cli/launch_job.h"

namespace diapason::cli {
namespace {

constexpr int kMostRanks = 4096;
constexpr double kLongestGrace = 86400;
constexpr double kLongestTimeout = 1e8;  // three years

struct Options {
  int ranks = 0;
  int port = 0;
  bool prefix = false;
  double grace = 5;
  double timeout = 0;
  std::vector<std::string> assignments;
  std::string log_dir;
  std::vector<std::string> command;
};

// Not Range: that lets "nan" pass.
Rule SecondsUpTo(double most) {
  return {[most](std::string& text) -> std::string {
            char* end = nullptr;
            const double value = std::strtod(text.c_str(), &end);
            if (!text.empty() && *end == '\0' && value >= 0 && value <= most) return "";
            return Format("'%s' is not a number of seconds from 0 to %.0f", text.c_str(), most);
          },
          ""};
}

// Descriptors 0, 1 and 2 must be there: the first file that is opened would take their place.
void OpenMissingStandardFiles() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    (void)::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  }
}

int CoresPerRank(int ranks) {
  int cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) cores = CPU_COUNT(&set);
  return std::max(1, cores / ranks);
}

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(std::ceil(seconds * 1000)));
}

int Launch(const Options& options) {
  OpenMissingStandardFiles();
  std::string warning;
  const Result<int> port = ChoosePort(options.port, ProcessEnvironment(), &warning);
  if (!port.ok()) return Fail(port.status());
  if (!warning.empty()) Warn(warning);
  if (!options.log_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.log_dir, error);
    if (error) {
      return Fail(IoError(Format("cannot create the folder '%s': %s", options.log_dir.c_str(),
                                 error.message().c_str())));
    }
  }
  JobOptions job;
  job.command = options.command;
  job.prefix = options.prefix;
  job.log_dir = options.log_dir;
  job.grace = Milliseconds(options.grace);
  job.timeout = Milliseconds(options.timeout);
  const RankPlace place{options.ranks, port.value(), CoresPerRank(options.ranks)};
  for (int rank = 0; rank < options.ranks; ++rank) {
    job.environments.push_back(
        RankEnvironment(ProcessEnvironment(), place, rank, options.assignments));
  }
  return Job(std::move(job)).Run();
}

}  // namespace

void AddLaunch(CommandLine* parent, Run* run) {
  auto options = std::make_shared<Options>();
  CommandLine* command = parent->AddCommand("launch",
                                            "Start a program as several ranks on this host: "
                                            "diapason launch -n 4 -- COMMAND ARGUMENTS...");
  command->AddOption("-n,--ranks", options->ranks, "How many ranks to start")
      ->Required()
      ->Check(Range(1, kMostRanks));
  command
      ->AddOption("--port", options->port,
                  "MASTER_PORT of the job; else the variable's, else a free one")
      ->Check(Range(1, 65535));
  command->AddFlag("-p,--prefix", options->prefix,
                   "Put \"[RANK] \" before every line of the ranks' output");
  command
      ->AddOption("--log-dir", options->log_dir,
                  "Write the ranks' output to DIR/rank-N.out and .err; with --prefix show it too")
      ->TypeName("DIR");
  command->AddOption("--env", options->assignments, "Set a variable for all ranks; repeatable")
      ->TypeName("NAME=VALUE")
      ->OneEach()
      ->Check(Rule{[](std::string& text) { return CheckAssignment(text).message(); }, ""});
  command
      ->AddOption("--grace", options->grace,
                  "How long ranks that are asked to end may take before they are killed")
      ->TypeName("SECONDS")
      ->Check(SecondsUpTo(kLongestGrace))
      ->ShowDefault();
  command
      ->AddOption("--timeout", options->timeout,
                  "End everything after so long, with status 124; 0: never")
      ->TypeName("SECONDS")
      ->Check(SecondsUpTo(kLongestTimeout))
      ->ShowDefault();
  command->TakeCommand("After --: the program and its arguments");
  command->Footer(
      "Exit status: 0 all ranks succeeded; else that of the first rank that failed, 128 + signal "
      "if "
      "one killed it.\n"
      "Own statuses: 1 the job could not be set up or its output not be written, 2 wrong usage, "
      "124 --timeout, 126 the command is not executable, 127 not found.");
  command->Callback([command, options, run] {
    options->command = command->CommandAfterDashes("diapason launch -n 4 --");
    if (options->command.empty()) {
      throw UsageError{"launch", "no command; diapason launch -n 4 -- COMMAND ARGUMENTS..."};
    }
    *run = [options] { return Launch(*options); };
  });
}

}  // namespace diapason::cli
