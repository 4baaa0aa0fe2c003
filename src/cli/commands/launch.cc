#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "launch/local_job.h"
#include "launch/rank_environment.h"

namespace diapason::cli {
namespace {

constexpr int kMostRanks = 4096;
constexpr double kLongestGrace = 86400;
constexpr double kLongestTimeout = 1e8;  // about three years

struct LaunchOptions {
  int ranks = 0;
  int port = 0;
  bool prefix = false;
  double grace = 5;
  double timeout = 0;
  std::vector<std::string> assignments;
  std::string log_dir;
  std::vector<std::string> command;
};

// A job whose standard output or error is closed keeps running; its output is lost. main() has put
// a placeholder there that cannot be written to.
void LetRanksPrintToNowhere() {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY) continue;
    const int null = ::open("/dev/null", O_WRONLY);
    if (null < 0) continue;
    (void)::dup2(null, fd);
    ::close(null);
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

int Launch(const LaunchOptions& options) {
  LetRanksPrintToNowhere();
  std::string warning;
  const Result<int> port = launch::ChoosePort(options.port, ProcessEnvironment(), &warning);
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
  launch::LocalJobOptions job;
  job.command = options.command;
  job.prefix = options.prefix;
  job.log_dir = options.log_dir;
  job.grace = Milliseconds(options.grace);
  job.timeout = Milliseconds(options.timeout);
  const auto secret = std::make_shared<launch::LaunchSecret>();
  if (const Status made = secret->Make(); !made.ok()) return Fail(made);
  job.secret = secret;
  const launch::LocalJobInfo place{options.ranks, port.value(), CoresPerRank(options.ranks),
                                   secret->path()};
  for (int rank = 0; rank < options.ranks; ++rank) {
    job.environments.push_back(
        launch::RankEnvironment(ProcessEnvironment(), place, rank, options.assignments));
  }
  return launch::LocalJob(std::move(job)).Run();
}

}  // namespace

void AddLaunch(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<LaunchOptions>();
  CommandLine* command =
      parent->AddCommand("launch", "Start a program as several ranks on this host");
  command->Describe(
      "Sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT as torchrun does, and "
      "DIAPASON_SECRET_FILE to a file with a secret of this launch: groups of diapason admit only "
      "processes that know it. When a rank fails, the other ranks are terminated and the error "
      "message names the failed rank.");
  command->AddOption("-n,--ranks", options->ranks, "Number of ranks to start")
      ->Required()
      ->Check(Range(1, kMostRanks));
  command
      ->AddOption("--port", options->port,
                  "MASTER_PORT of the job; otherwise that of the environment, or a free port")
      ->Check(Range(1, 65535));
  command->AddFlag("-p,--prefix", options->prefix,
                   "Prefix every line of the ranks' output with \"[RANK] \"");
  command
      ->AddOption("--log-dir", options->log_dir,
                  "Write the ranks' output to DIR/rank-N.out and .err; with --prefix also print it")
      ->TypeName("DIR");
  command->AddOption("--env", options->assignments, "Environment variable to set for all ranks")
      ->TypeName("NAME=VALUE")
      ->OneEach()
      ->Check(
          ValueRule{[](std::string& text) { return launch::CheckAssignment(text).message(); }, ""});
  command->AddTime("--grace", options->grace,
                   "Time that ranks have to end after SIGTERM before they are killed", 0,
                   kLongestGrace);
  command->AddTime("--timeout", options->timeout,
                   "Time after which the whole job is terminated; 0 means never", 0,
                   kLongestTimeout);
  command->TakeCommand();
  command->Describe(
      "The exit status is that of the first rank that failed, or 128 + N if signal N killed it.");
  command->Example("diapason launch -n 4 -- ./train --epochs 3", "Run a program on four ranks");
  command->Example("diapason launch -n 2 -p --env NCCL_DEBUG=INFO -- python3 train.py",
                   "Print the rank before every line of output");
  command->ExitStatus(kExitFine, "all ranks succeeded");
  command->ExitStatus(kExitFailed,
                      "the job could not be set up, or its output could not be written");
  command->ExitStatus(124, "the time of --timeout has passed");
  command->ExitStatus(126, "the command is not executable");
  command->ExitStatus(127, "the command was not found");
  command->SeeAlso({"bench"});
  command->Callback([command, options, run] {
    options->command = command->CommandAfterDashes("diapason launch -n 4 --");
    if (options->command.empty()) {
      throw UsageError{"", "no command given; usage: diapason launch -n 4 -- COMMAND ARGUMENTS..."};
    }
    *run = [options] { return Launch(*options); };
  });
}

}  // namespace diapason::cli
