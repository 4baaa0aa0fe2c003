#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/doctor/doctor_report.h"
#include "cli/framework/command.h"
#include "cli/framework/findings.h"
#include "doctor/this_machine.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using host::LibraryFile;

constexpr std::chrono::milliseconds kBetweenLooks{1000};
constexpr size_t kMostReports = 10000;
constexpr size_t kMostOtherThreads = 8;
constexpr double kShownBusy = 0.01;

std::string Versions(const std::vector<int>& versions) {
  std::vector<std::string> parts;
  for (const int version : versions) parts.push_back(Format("v{}", version));
  return parts.empty() ? "none" : Join(parts, " ");
}

std::string Common(const std::vector<int>& looked_up, const std::vector<int>& offered) {
  const int api = doctor::CommonApi(looked_up, offered);
  return api == 0 ? "none" : Format("v{}", api);
}

bool IsCollectiveLibrary(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libnccl.so") || name.starts_with("librccl.so");
}

Result<doctor::ProcessFacts> LookAtProcess(const RootFs& tree, pid_t pid) {
  doctor::ProcessFacts facts;
  ASSIGN_OR_RETURN(host::ProcessSample before, host::SampleProcess(tree, pid));
  facts.before = std::move(before);
  Result<std::vector<host::MappedFile>> mapped = host::MappedLibraries(tree, pid);
  if (mapped.ok()) {
    facts.mapped = std::move(mapped).value();
  } else {
    facts.mapped_known = false;
    facts.unknown.push_back("the libraries that the process has loaded cannot be determined: " +
                            mapped.status().message());
  }
  knobs::CheckedFor checked_for;
  checked_for.tree = &tree;
  for (const host::MappedFile& file : facts.mapped) {
    // A file that was replaced is not the one that is loaded.
    if (file.deleted || !IsCollectiveLibrary(file.path)) continue;
    Result<LibraryFile> library = host::LookAtLibrary(tree, file.path);
    if (!library.ok()) continue;
    checked_for.library = library.value().library;
    checked_for.version = library.value().version;
    facts.libraries.push_back(std::move(library).value());
  }
  const Result<MapEnvironment> environment = host::EnvironmentOf(tree, pid);
  if (environment.ok()) {
    facts.assignments =
        knobs::FromEnvironment(environment.value(), Format("process {}", static_cast<int>(pid)));
    const auto files =
        knobs::FromConfigFiles(tree, environment.value(), &facts.environment, checked_for);
    facts.assignments.insert(facts.assignments.end(), files.begin(), files.end());
    const std::vector<Finding> findings =
        knobs::CheckAssignments(facts.assignments, checked_for, knobs::Catalogue::BuiltIn());
    facts.environment.insert(facts.environment.end(), findings.begin(), findings.end());
  } else {
    facts.unknown.push_back(environment.status().message());
  }
  facts.limits = tree.Read(Format("/proc/{}/limits", static_cast<int>(pid))).value_or("");
  std::this_thread::sleep_for(kBetweenLooks);
  ASSIGN_OR_RETURN(host::ProcessSample after, host::SampleProcess(tree, pid));
  facts.after = std::move(after);
  if (facts.after.start_ticks != facts.before.start_ticks) {
    return NotFound(Format("process {} ended while it was examined", static_cast<int>(pid)));
  }
  return facts;
}

// The loaded libraries, the growth of memory, and the threads that used a CPU between the two
// samples.
void PrintProcess(const doctor::ProcessFacts& facts) {
  const host::ProcessSample& now = facts.after;
  PrintOut("process {}, {}: {}\n", static_cast<int>(now.pid), now.name,
           Count(now.threads.size(), "thread"));
  for (const LibraryFile& file : facts.libraries) {
    PrintOut("library: {} {}, {}\n", std::string(LibraryTitle(file.library)),
             doctor::VersionOf(file), file.path);
  }
  for (const host::MappedFile& file : facts.mapped) {
    if (file.path.find("-diapason.so") == std::string::npos) continue;
    PrintOut("plugin:  {}\n", file.path);
  }
  PrintOut("memory:  {} resident, {}\n\n", AboutBytes(now.resident),
           doctor::MemoryMoved(facts.before, now));
  report::Table table({"thread", "CPU %", "no CPU %", "on CPU", "may use"});
  table.SetAlign({report::Table::Align::kLeft, report::Table::Align::kRight,
                  report::Table::Align::kRight, report::Table::Align::kRight,
                  report::Table::Align::kLeft});
  size_t others = 0;
  size_t rows = 0;
  bool named = false;
  for (const doctor::ThreadUse& use : doctor::UseOfThreads(facts.before, now)) {
    const bool of_library = use.role != host::ThreadRole::kOther;
    named = named || of_library;
    // All threads of the library and the busiest of the program's own; the busiest thread always.
    const bool idle = use.busy < kShownBusy && rows > 0;
    if (!of_library && (others == kMostOtherThreads || idle)) continue;
    others += of_library ? 0 : 1;
    ++rows;
    table.Add({use.name, Format("{:.0f}", use.busy * 100), Format("{:.0f}", use.waiting * 100),
               use.last_cpu < 0 ? "-" : Format("{}", use.last_cpu), use.allowed_cpus});
  }
  if (rows > 0) PrintOut("{}\n", table.Text());
  if (!facts.libraries.empty() && !named) {
    PrintOut("The library's threads have no names; NCCL_SET_THREAD_NAME=1 gives them names.\n\n");
  }
}

}  // namespace

Result<int> ShowLibrary(const std::string& root, const std::string& path, bool json) {
  const RootFs tree(root);
  // Below another root a path belongs to that machine.
  std::error_code ignored;
  const std::string whole = tree.live() ? std::filesystem::absolute(path, ignored).string() : path;
  ASSIGN_OR_RETURN(const LibraryFile file, host::LookAtLibrary(tree, whole));
  const doctor::PluginFile plugin = doctor::FindOwnPlugin();
  if (json) {
    WriteOut(LibraryJson(file, plugin));
    return kExitFine;
  }
  const LibraryFile& library = file;
  PrintOut("{}\n", library.path);
  if (library.real_path != library.path) PrintOut("  is {}\n", library.real_path);
  PrintOut("  {} {}{}{}\n", std::string(LibraryTitle(library.library)),
           library.version_text.empty() ? doctor::VersionOf(library) : library.version_text,
           library.toolkit.empty() ? "" : ", built for ", library.toolkit);
  report::Table table({"plugin", "interfaces it looks up", "diapason interface it would use"});
  table.Add({"tuner", Versions(library.tuner_apis), Common(library.tuner_apis, plugin.tuner_apis)});
  table.Add({"profiler", Versions(library.profiler_apis),
             Common(library.profiler_apis, plugin.profiler_apis)});
  table.Add({"env", Versions(library.env_apis), Common(library.env_apis, plugin.env_apis)});
  table.Add({"net", Versions(library.net_apis), "-"});
  WriteOut(table.Text());
  if (plugin.path.empty()) PrintOut("(the diapason plugins are not beside this tool)\n");
  return kExitFine;
}

Result<int> ShowProcess(const std::string& root, int pid, bool json, bool all) {
  ASSIGN_OR_RETURN(const doctor::ProcessFacts facts, LookAtProcess(RootFs(root), pid));
  const std::vector<Finding> findings = doctor::CheckProcess(facts);
  if (json) {
    WriteOut(ProcessJson(facts, findings));
    return ExitStatusOf(findings);
  }
  PrintProcess(facts);
  WriteOut(FindingsText(findings, all));
  PrintOut("{}\n", FindingsSummary(findings));
  return ExitStatusOf(findings);
}

Result<int> CompareReports(const std::vector<std::string>& paths, bool json, bool all) {
  if (paths.size() > kMostReports) {
    return Invalid(Format("at most {} reports can be compared at a time", kMostReports));
  }
  std::vector<doctor::HostFacts> hosts;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(doctor::HostFacts host, ReadDoctorReport(path));
    hosts.push_back(std::move(host));
  }
  const std::vector<Finding> findings = doctor::CompareHosts(hosts);
  if (json) {
    PrintOut("{}\n", FindingsJson(findings));
    return ExitStatusOf(findings);
  }
  WriteOut(FindingsText(findings, all));
  size_t same = 0;
  for (const Finding& finding : findings) same += finding.id == "compare.same" ? 1 : 0;
  PrintOut("{} hosts; {} the same on all; {}\n", hosts.size(), Count(same, "fact"),
           FindingsSummary(findings));
  return ExitStatusOf(findings);
}

}  // namespace diapason::cli
