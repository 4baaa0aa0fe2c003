#include "comm/launch_info.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"

namespace diapason::comm {
namespace {

constexpr int kDefaultPort = 29500;
// torchrun uses MASTER_PORT itself; rank 0 takes one of the next ports.
constexpr int kTorchrunPorts = 16;
// Below the ports that Linux uses for outgoing connections.
constexpr int kFirstJobPort = 20000;
constexpr uint32_t kJobPorts = 10000;
constexpr int64_t kMostRanks = 1 << 20;

// A launcher's variables for rank, size and local rank.
struct LauncherVariables {
  const char* source;
  const char* rank;
  const char* size;
  const char* local_rank;
};
constexpr LauncherVariables kLaunchers[] = {
    {"RANK and WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    // Only srun sets the number of tasks of a step: a batch script has a rank too, but no other
    // tasks to wait for.
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};

std::optional<std::string> Value(const Environment& environment, const char* name) {
  std::optional<std::string> value = environment.Get(name);
  if (value.has_value() && Trim(*value).empty()) value.reset();
  return value;
}

Result<int> Number(const char* name, const std::string& text, int64_t low, int64_t high) {
  int64_t number = 0;
  if (!ParseSigned(Trim(text), &number) || number < low || number > high) {
    return Invalid(Format("{}='{}' is not a whole number from {} to {}", name, text, low, high));
  }
  return static_cast<int>(number);
}

Status ReadWords(const LauncherVariables& words, const Environment& environment,
                 LaunchInfo* launch) {
  const std::optional<std::string> rank_text = Value(environment, words.rank);
  const std::optional<std::string> size_text = Value(environment, words.size);
  ASSIGN_OR_RETURN(const int size, Number(words.size, *size_text, 1, kMostRanks));
  ASSIGN_OR_RETURN(const int rank, Number(words.rank, *rank_text, 0, kMostRanks));
  if (rank >= size) {
    return Invalid(Format("{}={}, but there are only {}={} ranks, numbered from 0", words.rank,
                          rank, words.size, size));
  }
  launch->rank = rank;
  launch->size = size;
  launch->source = words.source;
  if (const std::optional<std::string> local = Value(environment, words.local_rank)) {
    ASSIGN_OR_RETURN(const int local_rank, Number(words.local_rank, *local, 0, kMostRanks));
    launch->local_rank = local_rank;
  }
  return {};
}

Status FindRank(const GroupOptions& options, const Environment& environment, LaunchInfo* launch) {
  if (options.rank >= 0 || options.size >= 0) {
    if (options.rank < 0 || options.size < 1 || options.rank >= options.size) {
      return Invalid(
          Format("rank {} of {} in the options is impossible: both have to be given, and "
                 "ranks run from 0 to size - 1",
                 options.rank, options.size));
    }
    launch->rank = options.rank;
    launch->size = options.size;
    launch->source = "options";
    return {};
  }
  for (const LauncherVariables& words : kLaunchers) {
    const bool rank = Value(environment, words.rank).has_value();
    const bool size = Value(environment, words.size).has_value();
    if (rank && size) return ReadWords(words, environment, launch);
    const bool ours = &words == &kLaunchers[0];
    if (ours && rank != size) {
      return Invalid(Format("{} is set and {} is not: set both, or neither",
                            rank ? words.rank : words.size, rank ? words.size : words.rank));
    }
  }
  launch->source = "no launcher";
  return {};
}

Result<std::string> FindHost(const Environment& environment, const LaunchInfo& launch) {
  if (launch.source == "Open MPI") {
    const std::string local =
        Value(environment, "OMPI_COMM_WORLD_LOCAL_SIZE").value_or(std::to_string(launch.size));
    if (local != std::to_string(launch.size)) {
      return Invalid(
          "this job spans several hosts and Open MPI does not say where rank 0 is: start it with "
          "mpirun -x MASTER_ADDR=<rank 0's host>");
    }
  } else if (launch.source == "Slurm") {
    if (Value(environment, "SLURM_STEP_NUM_NODES").value_or("1") == "1") return {"localhost"};
    std::optional<std::string> list = Value(environment, "SLURM_STEP_NODELIST");
    if (!list.has_value()) list = Value(environment, "SLURM_JOB_NODELIST");
    const std::string host = FirstSlurmHost(list.value_or(""));
    if (host.empty()) {
      return Invalid(
          "this job spans several hosts and SLURM_STEP_NODELIST does not say where rank "
          "0 is: set MASTER_ADDR");
    }
    return host;
  }
  return {"localhost"};
}

// The launcher's identity of the job: two jobs that use the same port must not mix.
std::string JobName(const LaunchInfo& launch, const Environment& environment) {
  std::vector<const char*> names;
  if (launch.source == "Open MPI") names = {"PMIX_NAMESPACE"};
  if (launch.source == "Slurm") names = {"SLURM_JOB_ID", "SLURM_STEP_ID"};
  if (launch.address.ports > 1) names = {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"};
  std::string job;
  for (const char* name : names) job += Value(environment, name).value_or("") + "/";
  return job;
}

// mpirun and srun choose no port, and two of their jobs may share a host: each gets its own.
int DefaultPort(const LaunchInfo& launch, const Environment& environment) {
  const std::string job = JobName(launch, environment);
  if (job.find_first_not_of('/') == std::string::npos) return kDefaultPort;
  uint32_t hash = 2166136261U;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return kFirstJobPort + static_cast<int>(hash % kJobPorts);
}

}  // namespace

std::string FirstSlurmHost(const std::string& list) {
  const size_t end = list.find_first_of("[,");
  std::string host = list.substr(0, end);
  if (end == std::string::npos || list[end] == ',') return host;
  const size_t close = list.find(']', end);
  const size_t digits = list.find_first_not_of("0123456789", end + 1);
  if (close == std::string::npos || digits == end + 1) return "";
  host += list.substr(end + 1, digits - end - 1);
  const size_t rest = list.find(',', close);
  const std::string tail = list.substr(close + 1, rest - close - 1);
  return tail.find('[') == std::string::npos ? host + tail : "";
}

Result<LaunchInfo> FindLaunch(const GroupOptions& options, const Environment& environment) {
  LaunchInfo launch;
  RETURN_IF_ERROR(FindRank(options, environment, &launch));
  if (options.local_rank >= 0) launch.local_rank = options.local_rank;

  launch.address.host = options.master_addr;
  if (launch.address.host.empty()) {
    launch.address.host = Value(environment, "MASTER_ADDR").value_or("");
  }
  if (launch.address.host.empty()) {
    ASSIGN_OR_RETURN(const std::string host, FindHost(environment, launch));
    launch.address.host = host;
  }

  launch.address.port = options.master_port;
  if (launch.address.port == 0) {
    launch.address.port = DefaultPort(launch, environment);
    if (const std::optional<std::string> text = Value(environment, "MASTER_PORT")) {
      ASSIGN_OR_RETURN(const int port, Number("MASTER_PORT", *text, 1, 65535));
      launch.address.port = port;
      if (Value(environment, "TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True") {
        ++launch.address.port;
        launch.address.ports = kTorchrunPorts;
      }
    }
  } else if (launch.address.port < 0 || launch.address.port > 65535) {
    return Invalid(Format("master_port {} is no port", launch.address.port));
  }
  launch.address.port = std::min(launch.address.port, 65536 - launch.address.ports);

  launch.address.token = JobName(launch, environment);
  return launch;
}

}  // namespace diapason::comm
