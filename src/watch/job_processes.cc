#include "watch/job_processes.h"

#include <algorithm>

#include "base/text.h"
#include "host/process.h"
#include "process/sessions.h"
#include "watch/counters.h"
#include "watch/ras_client.h"

namespace diapason::watch {
namespace {

constexpr size_t kMostMaps = size_t{32} << 20;
constexpr size_t kMostJobProcesses = 1024;

int NumberIn(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    int64_t number = 0;
    if (ParseSigned(environment.Get(name).value_or(""), &number) && number >= 0 &&
        number <= INT32_MAX) {
      return static_cast<int>(number);
    }
  }
  return -1;
}

// Jobs inside one allocation differ in the port of rank 0 or in the step.
std::string MarksOf(const Environment& environment) {
  std::string marks;
  for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE",
                           "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid", "PMI_JOBID",
                           "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"}) {
    const std::string value = environment.Get(name).value_or("");
    // torchrun's name for "none was given".
    if (value.empty() || (name == std::string_view("TORCHELASTIC_RUN_ID") && value == "none")) {
      continue;
    }
    marks += std::string(marks.empty() ? "" : " ") + name + "=" + value.substr(0, 256);
  }
  return marks;
}

pid_t InnermostPid(const RootFs& tree, pid_t pid) {
  const std::string status =
      tree.Read(Format("/proc/{}/status", static_cast<int>(pid))).value_or("");
  const size_t at = status.find("\nNSpid:");
  if (at == std::string::npos) return pid;
  const size_t start = at + sizeof("\nNSpid:") - 1;
  const std::string_view line =
      Trim(std::string_view(status).substr(start, status.find('\n', start) - start));
  uint64_t inner = 0;
  const size_t last = line.find_last_of(" \t");
  const std::string_view word = last == std::string_view::npos ? line : line.substr(last + 1);
  return ParseUnsigned(word, &inner) && inner <= INT32_MAX ? static_cast<pid_t>(inner) : pid;
}

bool IsLauncher(const JobProcess& process, const std::vector<JobProcess>& all) {
  return process.rank < 0 && std::any_of(all.begin(), all.end(), [&](const JobProcess& other) {
           return other.parent == process.pid && other.rank >= 0;
         });
}

bool IsWorker(const JobProcess& process, const std::vector<JobProcess>& all) {
  return process.rank >= 0 && std::any_of(all.begin(), all.end(), [&](const JobProcess& other) {
           const bool older = std::pair(other.start_ticks, other.pid) <
                              std::pair(process.start_ticks, process.pid);
           return other.rank == process.rank && older && SameJob(other, process);
         });
}

}  // namespace

int RankInEnvironment(const Environment& environment) {
  return NumberIn(environment,
                  {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"});
}

int WorldInEnvironment(const Environment& environment) {
  return NumberIn(environment, {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"});
}

bool MapsCollectiveLibrary(const RootFs& tree, pid_t pid, std::string* file) {
  const std::optional<std::string> maps =
      tree.Read(Format("/proc/{}/maps", static_cast<int>(pid)), kMostMaps);
  if (!maps) return false;
  for (const char* name : {"/libnccl.so", "/librccl.so", "/libnccl", "/librccl"}) {
    const size_t at = maps->find(name);
    if (at == std::string::npos) continue;
    if (file != nullptr) {
      const size_t line = maps->rfind('\n', at) + 1;
      const size_t start = maps->find('/', line);
      *file = maps->substr(start, maps->find('\n', at) - start);
    }
    return true;
  }
  return false;
}

bool ReadJobProcess(const RootFs& tree, pid_t pid, JobProcess* process) {
  const auto text = tree.Read(Format("/proc/{}/stat", static_cast<int>(pid)));
  const auto stat = text ? process::ParseStat(*text) : std::nullopt;
  if (!stat || !MapsCollectiveLibrary(tree, pid, &process->library)) return false;
  const Result<MapEnvironment> environment = host::EnvironmentOf(tree, pid);
  if (!environment.ok()) return false;
  process->pid = pid;
  process->inner_pid = InnermostPid(tree, pid);
  process->name = stat->name;
  process->start_ticks = stat->Number(22);
  process->parent = static_cast<pid_t>(stat->Number(4));
  process->session = static_cast<pid_t>(stat->Number(6));
  process->rank = RankInEnvironment(environment.value());
  process->world = WorldInEnvironment(environment.value());
  process->marks = MarksOf(environment.value());
  process->ras_address = environment.value().Get("NCCL_RAS_ADDR").value_or(kRasAddress);
  process->net = NetNamespaceOf(tree, pid);
  return true;
}

std::vector<JobProcess> LibraryProcesses(const RootFs& tree) {
  std::vector<JobProcess> processes;
  for (const std::string& name : tree.List("/proc")) {
    uint64_t pid = 0;
    if (!ParseUnsigned(name, &pid) || pid == 0 || pid > INT32_MAX) continue;
    JobProcess process;
    if (ReadJobProcess(tree, static_cast<pid_t>(pid), &process)) {
      processes.push_back(std::move(process));
    }
    if (processes.size() == kMostJobProcesses) break;
  }
  std::vector<JobProcess> ranks;
  for (const JobProcess& process : processes) {
    if (!IsLauncher(process, processes) && !IsWorker(process, processes)) ranks.push_back(process);
  }
  return ranks;
}

bool SameJob(const JobProcess& a, const JobProcess& b) {
  if (!a.marks.empty() || !b.marks.empty()) return a.marks == b.marks;
  return (a.session == b.session && a.session > 1) || (a.parent == b.parent && a.parent > 1);
}

std::vector<std::vector<JobProcess>> SplitIntoJobs(const std::vector<JobProcess>& processes) {
  std::vector<std::vector<JobProcess>> jobs;
  for (const JobProcess& process : processes) {
    const auto job = std::find_if(jobs.begin(), jobs.end(), [&](const auto& members) {
      return std::any_of(members.begin(), members.end(),
                         [&](const JobProcess& member) { return SameJob(member, process); });
    });
    if (job == jobs.end()) {
      jobs.push_back({process});
    } else {
      job->push_back(process);
    }
  }
  return jobs;
}

char StateOf(const RootFs& tree, pid_t pid, uint64_t start_ticks) {
  const auto text = tree.Read(Format("/proc/{}/stat", static_cast<int>(pid)));
  const auto stat = text ? process::ParseStat(*text) : std::nullopt;
  return stat && stat->Number(22) == start_ticks ? stat->state : 'X';
}

const char* StateName(char state) {
  switch (state) {
    case 'R':
    case 'S':
    case 'I':
      return "running";
    case 'T':
      return "stopped";
    case 't':
      return "traced";
    case 'D':
      return "in the kernel";
    case 'Z':
      return "zombie";
    case 'X':
    case 'x':
      return "gone";
    default:
      return "-";
  }
}

}  // namespace diapason::watch
