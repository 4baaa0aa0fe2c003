#include "launch/local_launch.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/environment.h"
#include "base/host_name.h"
#include "base/text.h"
#include "launch/local_job.h"
#include "launch/rank_environment.h"

namespace diapason::launch {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// A job whose standard output or error was closed prints to nowhere: main() has put something there
// that cannot be written to.
void DiscardOutputOfRanks() {
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

// Makes the secret of a job on this host alone.
Result<LocalJobInfo> InfoOf(const LocalLaunchOptions& options, LaunchSecret* secret,
                            const std::function<void(const std::string&)>& warn) {
  LocalJobInfo info;
  info.ranks = options.ranks;
  info.threads = CoresPerRank(options.ranks);
  if (options.nodes > 1) {
    info.nodes = options.nodes;
    info.node_rank = options.node_rank;
    info.master = options.master;
    RETURN_IF_ERROR(CompleteShared(ProcessEnvironment(), options.port, &info));
    return info;
  }
  std::string warning;
  ASSIGN_OR_RETURN(info.port, ChoosePort(options.port, ProcessEnvironment(), &warning));
  if (!warning.empty()) warn(warning);
  RETURN_IF_ERROR(secret->Make());
  info.secret_file = secret->path();
  return info;
}

// "RANKS [--env NAME=VALUE]... -- COMMAND...", as LocalLaunchWords writes it.
Result<LocalLaunchOptions> Parse(const std::vector<std::string>& arguments) {
  LocalLaunchOptions options;
  uint64_t ranks = 0;
  size_t at = 0;
  if (arguments.empty() || !ParseUnsigned(arguments[at++], &ranks) || ranks == 0 ||
      ranks > kMostLocalRanks) {
    return Invalid("no number of ranks");
  }
  options.ranks = static_cast<int>(ranks);
  for (; at + 1 < arguments.size() && arguments[at] == "--env"; at += 2) {
    RETURN_IF_ERROR(CheckAssignment(arguments[at + 1]));
    options.assignments.push_back(arguments[at + 1]);
  }
  if (at + 1 >= arguments.size() || arguments[at] != "--") return Invalid("no command");
  options.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1, arguments.end());
  return options;
}

int RunHelperProcess(const std::vector<std::string>& arguments) {
  const Result<LocalLaunchOptions> options = Parse(arguments);
  if (!options.ok()) {
    std::fprintf(stderr, "diapason: error: %s\n", options.status().message().c_str());
    return kExitUsage;
  }
  const Result<int> status = LaunchLocally(options.value(), [](const std::string& text) {
    std::fprintf(stderr, "diapason: warning: %s\n", text.c_str());
  });
  if (status.ok()) return status.value();
  std::fprintf(stderr, "diapason: error: %s\n", status.status().message().c_str());
  return kExitFailed;
}

}  // namespace

const Helper kLocalLaunch{"@launch", RunHelperProcess};

std::vector<std::string> LocalLaunchWords(
    const std::string& program, int ranks,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<std::string> words = {program, kLocalLaunch.name, std::to_string(ranks)};
  for (const auto& [name, value] : environment) {
    words.insert(words.end(), {"--env", name + "=" + value});
  }
  words.emplace_back("--");
  return words;
}

Result<int> LaunchLocally(const LocalLaunchOptions& options,
                          const std::function<void(const std::string&)>& warn) {
  DiscardOutputOfRanks();
  const auto secret = std::make_shared<LaunchSecret>();
  ASSIGN_OR_RETURN(const LocalJobInfo info, InfoOf(options, secret.get(), warn));
  if (!options.log_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.log_dir, error);
    if (error) {
      return IoError(Format("cannot create the folder '{}': {}", options.log_dir, error.message()));
    }
  }
  LocalJobOptions job;
  job.command = options.command;
  job.prefix = options.prefix;
  job.log_dir = options.log_dir;
  job.grace = Milliseconds(options.grace);
  job.timeout = Milliseconds(options.timeout);
  job.secret = secret;
  job.first_rank = info.first_rank();
  if (info.nodes > 1) job.host = HostName();
  for (int rank = 0; rank < options.ranks; ++rank) {
    job.environments.push_back(
        RankEnvironment(ProcessEnvironment(), info, rank, options.assignments));
  }
  return LocalJob(std::move(job)).Run();
}

}  // namespace diapason::launch
