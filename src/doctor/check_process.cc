#include "doctor/check_process.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "doctor/checks.h"
#include "doctor/facts.h"

namespace diapason::doctor {
namespace {

constexpr double kBusy = 0.5;
constexpr double kStarved = 0.1;
constexpr double kGrowth = 16.0 * (1 << 20);  // bytes per second

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void CheckLoaded(const ProcessFacts& facts, std::vector<Finding>* findings) {
  if (!facts.mapped_known) return;
  std::vector<std::string> copies;
  for (const host::MappedFile& file : facts.mapped) {
    const std::string name = FileName(file.path);
    if (!name.starts_with("libnccl.so") && !name.starts_with("librccl.so")) continue;
    copies.push_back(file.path + (file.deleted ? " (replaced on the disk since)" : ""));
    if (file.deleted) {
      AddFinding(findings, "process.library-replaced", Severity::kWarning,
                 "the file of the loaded library has been replaced since: what the disk says of it "
                 "does not hold for this process",
                 {copies.back()}, "start the job again to get the new one");
    }
  }
  if (copies.size() > 1) {
    AddFinding(findings, "process.two-libraries", Severity::kError,
               "two collective libraries are loaded at once: calls may go to either", copies,
               "find out who brings the second: LD_PRELOAD, LD_LIBRARY_PATH, another framework");
  }
  for (const host::LibraryFile& file : facts.libraries) {
    AddFinding(findings, "process.library", Severity::kFine,
               "loaded: " + std::string(LibraryTitle(file.library)) + " " + VersionOf(file),
               {file.path});
  }
  if (copies.empty()) {
    AddFinding(findings, "process.no-library", Severity::kNote,
               "neither libnccl nor librccl is loaded: not yet, or it is inside another library",
               {Format("/proc/{}/maps", facts.after.pid)});
  }
  const host::MappedFile* plugin = nullptr;
  for (const host::MappedFile& file : facts.mapped) {
    if (FileName(file.path).find("diapason") != std::string::npos) plugin = &file;
  }
  if (plugin != nullptr) {
    AddFinding(findings, "process.plugin", Severity::kFine, "diapason's plugin is loaded",
               {plugin->path});
  } else if (!copies.empty()) {
    AddFinding(findings, "process.plugin", Severity::kNote, "diapason's plugin is not loaded",
               {Format("/proc/{}/maps", facts.after.pid)});
  }
}

void CheckThreads(const ProcessFacts& facts, std::vector<Finding>* findings) {
  const std::vector<ThreadUse> uses = UseOfThreads(facts.before, facts.after);
  std::vector<std::string> ours;
  std::vector<std::string> starved;
  std::vector<std::string> shared;
  for (const ThreadUse& use : uses) {
    if (use.role == host::ThreadRole::kOther) continue;
    const std::string line =
        Format("{}: {:.0f} % of a CPU, waited {:.0f} %, last on CPU {}, may use {}", use.name,
               use.busy * 100, use.waiting * 100, use.last_cpu, use.allowed_cpus);
    ours.push_back(line);
    if (use.waiting > kStarved) starved.push_back(line);
    if (use.role != host::ThreadRole::kProgress || use.last_cpu < 0) continue;
    for (const ThreadUse& other : uses) {
      if (other.role != host::ThreadRole::kOther || other.busy < kBusy) continue;
      if (other.last_cpu == use.last_cpu) {
        shared.push_back(Format("{} and {} ({:.0f} %): both last on CPU {}", use.name, other.name,
                                other.busy * 100, use.last_cpu));
      }
    }
  }
  if (!ours.empty()) {
    AddFinding(findings, "process.threads", Severity::kFine,
               Count(ours.size(), "thread") + " of the library", ours);
  }
  if (!starved.empty()) {
    AddFinding(findings, "process.starved", Severity::kWarning,
               "threads of the library were ready to run and got no CPU", starved,
               "give the job more CPUs, or bind its own threads away from those");
  }
  if (!shared.empty()) {
    AddFinding(findings, "process.shared-cpu", Severity::kWarning,
               "a progress thread shares a CPU with a busy thread of the program", shared,
               "leave CPUs free near the GPU: NCCL_IGNORE_CPU_AFFINITY=0 and a wider binding");
  }
}

void CheckMemory(const ProcessFacts& facts, std::vector<Finding>* findings) {
  const double seconds = facts.after.time_s - facts.before.time_s;
  const double growth =
      static_cast<double>(facts.after.resident) - static_cast<double>(facts.before.resident);
  const std::string have = AboutBytes(facts.after.resident) + " resident";
  if (facts.after.swapped > 0) {
    AddFinding(findings, "process.swapped", Severity::kWarning,
               "a part of the process is swapped out",
               {AboutBytes(facts.after.swapped) + " swapped, " + have},
               "give the job more memory, or the host less swap");
  }
  const bool grows = seconds > 0 && growth / seconds > kGrowth;
  AddFinding(findings, "process.memory", grows ? Severity::kNote : Severity::kFine,
             grows ? "its memory grows" : "its memory does not grow much",
             {MemoryMoved(facts.before, facts.after) + ", " + have},
             grows ? "look again later: a job that starts grows too" : "");
}

void CheckProcessLimits(const ProcessFacts& facts, std::vector<Finding>* findings) {
  const bool rdma = std::any_of(facts.mapped.begin(), facts.mapped.end(), [](const auto& file) {
    return FileName(file.path).starts_with("libibverbs");
  });
  const auto memlock = host::LimitIn(facts.limits, "Max locked memory");
  if (rdma && memlock && *memlock != host::kUnlimited) {
    AddFinding(findings, "process.memlock", Severity::kWarning,
               "it uses RDMA, and may lock only " + AboutLimit(*memlock),
               {Format("/proc/{}/limits: max locked memory", facts.after.pid)},
               "ulimit -l unlimited where the job starts");
  }
  const auto files = host::LimitIn(facts.limits, "Max open files");
  if (files && *files != host::kUnlimited &&
      static_cast<uint64_t>(std::max(0, facts.after.open_files)) * 10 > *files * 8) {
    AddFinding(findings, "process.open-files", Severity::kWarning,
               "it is close to its limit of open files",
               {Format("{} open, {} allowed", facts.after.open_files, *files)},
               "ulimit -n 65536 where the job starts");
  }
}

}  // namespace

std::string MemoryMoved(const host::ProcessSample& before, const host::ProcessSample& after) {
  double mib =
      (static_cast<double>(after.resident) - static_cast<double>(before.resident)) / (1 << 20);
  // A change of one page would print "-0.0".
  if (std::abs(mib) < 0.05) mib = 0;
  return Format("{:+.1f} MiB in {:.1f} s", mib, after.time_s - before.time_s);
}

std::vector<ThreadUse> UseOfThreads(const host::ProcessSample& before,
                                    const host::ProcessSample& after) {
  std::map<pid_t, const host::ThreadSample*> first;
  for (const host::ThreadSample& thread : before.threads) first[thread.tid] = &thread;
  const double seconds = after.time_s - before.time_s;
  std::vector<ThreadUse> uses;
  for (const host::ThreadSample& thread : after.threads) {
    const auto found = first.find(thread.tid);
    if (found == first.end() || found->second->start_ticks != thread.start_ticks ||
        !(seconds > 0)) {
      continue;
    }
    ThreadUse use;
    use.name = thread.name;
    use.role = thread.role;
    use.busy = std::max(0.0, thread.user_s + thread.system_s - found->second->user_s -
                                 found->second->system_s) /
               seconds;
    use.waiting = std::max(0.0, thread.wait_s - found->second->wait_s) / seconds;
    use.last_cpu = thread.last_cpu;
    use.allowed_cpus = thread.allowed_cpus;
    uses.push_back(std::move(use));
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const ThreadUse& a, const ThreadUse& b) { return a.busy > b.busy; });
  return uses;
}

std::vector<Finding> CheckProcess(const ProcessFacts& facts) {
  std::vector<Finding> findings;
  CheckLoaded(facts, &findings);
  CheckThreads(facts, &findings);
  CheckMemory(facts, &findings);
  CheckProcessLimits(facts, &findings);
  findings.insert(findings.end(), facts.environment.begin(), facts.environment.end());
  for (const std::string& unknown : facts.unknown) {
    AddFinding(&findings, "process.unknown", Severity::kNote, "not everything could be read",
               {unknown}, "run this as the user who owns the process, or as root");
  }
  SortBySeverity(&findings);
  return findings;
}

}  // namespace diapason::doctor
