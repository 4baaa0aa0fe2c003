#include "measure/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "base/environment.h"
#include "base/settings.h"
#include "base/text.h"
#include "comm/backend_facts.h"
#include "comm/backends/sim/cluster.h"
#include "comm/gpu/runtime.h"
#include "comm/launch_info.h"

namespace diapason::measure {
namespace {

// More threads than this are no simulation one would wait for.
constexpr int kMostThreads = 256;
constexpr double kUsualLimit = 60;  // seconds

GroupOptions GroupOptionsOf(const RankOptions& options, bool choose) {
  GroupOptions group;
  group.backend = BackendOf(options);
  group.timeout = std::chrono::milliseconds(std::llround(LimitOf(options) * 1000));
  group.slow_call =
      std::chrono::milliseconds(-1);  // a measuring program knows which calls are slow
  group.choose = choose;
  group.cluster = options.cluster;
  group.seed = options.seed;
  return group;
}

Result<int> RunRank(const GroupOptions& options, const RankBody& body) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Group> group, Group::Create(options));
  return body(group.get());
}

Result<int> RunThreads(const GroupOptions& options, int ranks, const RankBody& body) {
  std::vector<Result<int>> statuses(static_cast<size_t>(ranks), Result<int>(0));
  const auto run = [&options, &body, &statuses, ranks](int rank) {
    GroupOptions mine = options;
    mine.rank = rank;
    mine.size = ranks;
    statuses[static_cast<size_t>(rank)] = RunRank(mine, body);
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank) threads.emplace_back(run, rank);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const Result<int>& status : statuses) {
    if (!status.ok() || status.value() != 0) return status;
  }
  return 0;
}

}  // namespace

std::string BackendOf(const RankOptions& options) {
  if (options.backend != "auto") return options.backend;
  return Settings::Read(ProcessEnvironment()).Text(Setting::kBackend);
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

int RanksHere(const RankOptions& options) {
  if (options.ranks > 0) return options.ranks;
  const int usual = comm::FactsOfBackend(BackendOf(options)).ranks;
  if (usual > 0) return usual;
  for (const auto& runtime : {comm::gpu::Cuda(), comm::gpu::Hip()}) {
    if (runtime.ok()) return std::max(1, runtime.value()->DeviceCount());
  }
  return 2;
}

launch::Launcher LauncherHere(const std::string& backend, int ranks, const std::string& self) {
  launch::Launcher launcher;
  launcher.kind = comm::FactsOfBackend(backend).mpirun ? launch::Launcher::Kind::kMpirun
                                                       : launch::Launcher::Kind::kLocal;
  launcher.ranks = ranks;
  launcher.self = self;
  launcher.as_root = ::geteuid() == 0;
  return launcher;
}

Status CheckSettings() {
  const Settings settings = Settings::Read(ProcessEnvironment());
  return settings.problems().empty() ? Status() : Invalid(settings.problems().front());
}

bool IsLaunched() {
  const Result<comm::LaunchInfo> launch = comm::FindLaunch({}, ProcessEnvironment());
  // Half a launch is a launch: creating the group says what is wrong with it.
  return !launch.ok() || launch.value().source != "no launcher";
}

bool RanksAreHere(const RankOptions& options) {
  return IsLaunched() || comm::FactsOfBackend(BackendOf(options)).simulated ||
         RanksHere(options) == 1;
}

Result<int> RunOnEveryRank(const RankOptions& options, bool choose, const RankBody& body) {
  const GroupOptions group = GroupOptionsOf(options, choose);
  if (IsLaunched()) return RunRank(group, body);
  // What every rank would say is said once, before any is started.
  RETURN_IF_ERROR(CheckSettings());
  const int ranks = RanksHere(options);
  if (comm::FactsOfBackend(group.backend).simulated) {
    if (ranks > kMostThreads) {
      return Invalid(
          Format("{} simulated ranks are too many here: at most {}; `diapason "
                 "simulate` estimates larger clusters",
                 ranks, kMostThreads));
    }
    if (const std::string cluster = ClusterOf(options); !cluster.empty()) {
      RETURN_IF_ERROR(comm::sim::LoadCluster(cluster).status());
    }
    return RunThreads(group, ranks, body);
  }
  return RunRank(group, body);
}

}  // namespace diapason::measure
