#include "cli/framework/ranks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "base/file.h"
#include "base/settings.h"
#include "base/text.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/words.h"
#include "comm/backends/sim/cluster.h"
#include "comm/gpu/runtime.h"
#include "comm/launch_info.h"
#include "launch/launcher.h"

namespace diapason::cli {
namespace {

constexpr int kMostLocalRanks = 4096;
// More threads than this make a simulation too slow to wait for.
constexpr int kMostThreads = 256;
constexpr double kUsualLimit = 60;  // seconds

std::string Backend(const RankOptions& options) {
  if (options.backend != "auto") return options.backend;
  return Settings::Read(ProcessEnvironment()).Text(Setting::kBackend);
}

GroupOptions OptionsOf(const RankOptions& options, bool choose) {
  GroupOptions group;
  group.backend = Backend(options);
  group.timeout = std::chrono::milliseconds(std::llround(LimitOf(options) * 1000));
  group.slow_call = std::chrono::milliseconds(-1);  // the command itself reports slow calls
  group.choose = choose;
  group.cluster = options.cluster;
  group.seed = options.seed;
  return group;
}

int RunRank(const GroupOptions& options, const RankBody& body) {
  const Result<std::unique_ptr<Group>> group = Group::Create(options);
  if (!group.ok()) return Fail(group.status());
  return body(group.value().get());
}

int RunThreads(const GroupOptions& options, int ranks, const RankBody& body) {
  std::vector<int> statuses(static_cast<size_t>(ranks), kExitFailed);
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank) {
    threads.emplace_back([&options, &body, &statuses, rank, ranks] {
      GroupOptions mine = options;
      mine.rank = rank;
      mine.size = ranks;
      statuses[static_cast<size_t>(rank)] = RunRank(mine, body);
    });
  }
  GroupOptions first = options;
  first.rank = 0;
  first.size = ranks;
  statuses[0] = RunRank(first, body);
  for (std::thread& thread : threads) thread.join();
  for (const int status : statuses) {
    if (status != kExitFine) return status;
  }
  return kExitFine;
}

// Replaces this process by the launcher of the same command line.
int StartAnew(const std::string& backend, int ranks) {
  const Result<std::string> self = OwnProgram();
  if (!self.ok()) return Fail(self.status());
  Result<std::vector<std::string>> own = OwnArguments();
  if (!own.ok()) return Fail(own.status());
  launch::Launcher launcher;
  launcher.kind =
      backend == "mpi" ? launch::Launcher::Kind::kMpirun : launch::Launcher::Kind::kLocal;
  launcher.ranks = ranks;
  launcher.self = self.value();
  launcher.as_root = ::geteuid() == 0;
  own.value()[0] = self.value();
  launch::LaunchCommand launch = launch::CommandFor(launcher, own.value(), {});
  for (const auto& [name, value] : launch.environment) {
    (void)::setenv(name.c_str(), value.c_str(), 0);
  }
  std::vector<std::string>& command = launch.words;
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  return Fail(IoError("cannot start '" + command[0] + "': " + ErrnoText(errno)));
}

}  // namespace

Result<std::vector<std::string>> OwnArguments() {
  const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return IoError("cannot read /proc/self/cmdline: " + ErrnoText(errno));
  std::string text;
  char block[4096];
  ssize_t got = 0;
  while ((got = ::read(fd, block, sizeof(block))) > 0) text.append(block, static_cast<size_t>(got));
  ::close(fd);
  std::vector<std::string> arguments;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\0', at);
    arguments.push_back(text.substr(at, end - at));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  if (arguments.empty()) return Internal("this process has no command line");
  return arguments;
}

double LimitOf(const RankOptions& options) {
  if (options.limit > 0) return options.limit;
  const Settings settings = Settings::Read(ProcessEnvironment());
  if (!settings.IsSet(Setting::kTimeout)) return kUsualLimit;
  return static_cast<double>(settings.Number(Setting::kTimeout));
}

std::string ClusterOf(const RankOptions& options) {
  if (!options.cluster.empty()) return options.cluster;
  return Settings::Read(ProcessEnvironment()).Text(Setting::kCluster);
}

Result<std::string> OwnProgram() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0) return IoError("cannot read /proc/self/exe: " + ErrnoText(errno));
  return std::string(path, static_cast<size_t>(length));
}

int RanksHere(const RankOptions& options) {
  if (options.ranks > 0) return options.ranks;
  const std::string backend = Backend(options);
  if (backend == "sim") return 4;
  if (backend == "gloo" || backend == "mpi") return 2;
  for (const auto& runtime : {comm::gpu::Cuda(), comm::gpu::Hip()}) {
    if (runtime.ok()) return std::max(1, runtime.value()->DeviceCount());
  }
  return 2;
}

bool IsLaunched() {
  const Result<comm::LaunchInfo> launch = comm::FindLaunch({}, ProcessEnvironment());
  // An incomplete launch counts as a launch: creating the group reports what is missing.
  return !launch.ok() || launch.value().source != "no launcher";
}

ValueRule ClusterName() {
  const auto wrong = [](std::string& text) -> std::string {
    if (text.find_first_of("/.") != std::string::npos) return "";
    const Result<std::string_view> shipped = comm::sim::ShippedText(text);
    return shipped.ok() ? "" : shipped.status().message();
  };
  return {wrong, "", comm::sim::ClusterNames()};
}

void AddRankOptions(CommandLine* command, RankOptions* options, bool all) {
  std::vector<std::string> backends = BackendWords();
  if (all) backends.emplace_back("all");
  command->Heading("Ranks");
  command
      ->AddOption(
          "-g,--ranks", options->ranks,
          "Number of ranks to start on this host; ignored if a launcher started this command")
      ->Check(Range(1, kMostLocalRanks))
      ->Default("one per GPU, else 2; 4 with --backend sim");
  command->AddOption("--backend", options->backend, "Backend to run on: " + Join(backends, ", "))
      ->TypeName("NAME")
      ->Check(OneOf(backends))
      ->ShowDefault();
  command
      ->AddOption("--cluster", options->cluster, "Simulated cluster to run on, for --backend sim")
      ->TypeName("NAME")
      ->Check(ClusterName());
  Option* limit = command->AddTime("--limit", options->limit,
                                   "Time after which a wait counts as a hang", 0.1, 604800.0);
  if (options->limit <= 0) limit->Default("DIAPASON_TIMEOUT, else 60s");
  command->AddOption("--seed", options->seed, "Seed for the random number generator")
      ->ShowDefault();
}

int OnEveryRank(const RankOptions& options, bool choose, const RankBody& body) {
  const GroupOptions group = OptionsOf(options, choose);
  if (IsLaunched()) {
    const Result<comm::LaunchInfo> launch = comm::FindLaunch({}, ProcessEnvironment());
    if (launch.ok() && launch.value().rank != 0) ExpectJson(false);
    return RunRank(group, body);
  }
  // Reports errors that would be the same on every rank once, before any rank is started.
  const Settings settings = Settings::Read(ProcessEnvironment());
  if (!settings.problems().empty()) return Fail(Invalid(settings.problems().front()));
  const int ranks = RanksHere(options);
  if (group.backend == "sim") {
    if (ranks > kMostThreads) {
      return Fail(
          Invalid(Format("%d simulated ranks are too many here: at most %d; `diapason "
                         "simulate` estimates larger clusters",
                         ranks, kMostThreads)));
    }
    if (const std::string cluster = ClusterOf(options); !cluster.empty()) {
      const Status there = comm::sim::LoadCluster(cluster).status();
      if (!there.ok()) return Fail(there);
    }
    return RunThreads(group, ranks, body);
  }
  if (ranks == 1) return RunRank(group, body);
  return StartAnew(group.backend, ranks);
}

}  // namespace diapason::cli
