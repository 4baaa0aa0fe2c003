#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/doctor_report.h"
#include "cli/findings.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using advise::Finding;
using advise::LibraryFile;
using advise::Tree;

constexpr std::chrono::milliseconds kBetweenLooks{1000};
constexpr size_t kMostReports = 10000;
constexpr size_t kMostOtherThreads = 8;
constexpr double kShownBusy = 0.01;

std::string Versions(const std::vector<int>& versions) {
  std::vector<std::string> parts;
  for (const int version : versions) parts.push_back(Format("v%d", version));
  return parts.empty() ? "none" : Join(parts, " ");
}

std::string Common(const std::vector<int>& looked_up, const std::vector<int>& offered) {
  const int api = advise::CommonApi(looked_up, offered);
  return api == 0 ? "none" : Format("v%d", api);
}

bool IsCollectiveLibrary(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libnccl.so") || name.starts_with("librccl.so");
}

Result<advise::ProcessFacts> LookAtProcess(const Tree& tree, pid_t pid) {
  advise::ProcessFacts facts;
  Result<advise::ProcessSample> before = advise::SampleProcess(tree, pid);
  if (!before.ok()) return before.status();
  facts.before = std::move(before).value();
  Result<std::vector<advise::MappedFile>> mapped = advise::MappedLibraries(tree, pid);
  if (mapped.ok()) {
    facts.mapped = std::move(mapped).value();
  } else {
    facts.mapped_known = false;
    facts.unknown.push_back("which libraries it has loaded cannot be told: " +
                            mapped.status().message());
  }
  advise::CheckedFor checked_for;
  checked_for.tree = &tree;
  for (const advise::MappedFile& file : facts.mapped) {
    // A file that was replaced is not what is loaded.
    if (file.deleted || !IsCollectiveLibrary(file.path)) continue;
    Result<LibraryFile> library = advise::LookAtLibrary(tree, file.path);
    if (!library.ok()) continue;
    checked_for.library = library.value().library;
    checked_for.version = library.value().version;
    facts.libraries.push_back(std::move(library).value());
  }
  const Result<MapEnvironment> environment = advise::EnvironmentOf(tree, pid);
  if (environment.ok()) {
    facts.assignments =
        advise::FromEnvironment(environment.value(), Format("process %d", static_cast<int>(pid)));
    const auto files =
        advise::FromConfigFiles(tree, environment.value(), &facts.environment, checked_for);
    facts.assignments.insert(facts.assignments.end(), files.begin(), files.end());
    const std::vector<Finding> findings =
        advise::CheckAssignments(facts.assignments, checked_for, advise::Catalogue::BuiltIn());
    facts.environment.insert(facts.environment.end(), findings.begin(), findings.end());
  } else {
    facts.unknown.push_back(environment.status().message());
  }
  facts.limits = tree.Read(Format("/proc/%d/limits", static_cast<int>(pid))).value_or("");
  std::this_thread::sleep_for(kBetweenLooks);
  Result<advise::ProcessSample> after = advise::SampleProcess(tree, pid);
  if (!after.ok()) return after.status();
  facts.after = std::move(after).value();
  if (facts.after.start_ticks != facts.before.start_ticks) {
    return NotFound(Format("process %d ended while it was looked at", static_cast<int>(pid)));
  }
  return facts;
}

// What it has loaded, how its memory moves, and who of its threads used a CPU between the looks.
void PrintProcess(const advise::ProcessFacts& facts) {
  const advise::ProcessSample& now = facts.after;
  std::printf("process %d, %s: %s\n", static_cast<int>(now.pid), now.name.c_str(),
              Count(now.threads.size(), "thread").c_str());
  for (const LibraryFile& file : facts.libraries) {
    std::printf("library: %s %s, %s\n", std::string(LibraryTitle(file.library)).c_str(),
                advise::VersionOf(file).c_str(), file.path.c_str());
  }
  for (const advise::MappedFile& file : facts.mapped) {
    if (file.path.find("-diapason.so") == std::string::npos) continue;
    std::printf("plugin:  %s\n", file.path.c_str());
  }
  std::printf("memory:  %s resident, %s\n\n", AboutBytes(now.resident).c_str(),
              advise::MemoryMoved(facts.before, now).c_str());
  report::Table table({"thread", "CPU %", "no CPU %", "on CPU", "may use"});
  table.SetAlign({report::Table::Align::kLeft, report::Table::Align::kRight,
                  report::Table::Align::kRight, report::Table::Align::kRight,
                  report::Table::Align::kLeft});
  size_t others = 0;
  size_t rows = 0;
  bool named = false;
  for (const advise::ThreadUse& use : advise::UseOfThreads(facts.before, now)) {
    const bool of_library = use.role != advise::ThreadRole::kOther;
    named = named || of_library;
    // The busiest of the program's own, beside all of the library's; the very busiest always.
    const bool idle = use.busy < kShownBusy && rows > 0;
    if (!of_library && (others == kMostOtherThreads || idle)) continue;
    others += of_library ? 0 : 1;
    ++rows;
    table.Add({use.name, Format("%.0f", use.busy * 100), Format("%.0f", use.waiting * 100),
               use.last_cpu < 0 ? "-" : Format("%d", use.last_cpu), use.allowed_cpus});
  }
  if (rows > 0) std::printf("%s\n", table.Text().c_str());
  if (!facts.libraries.empty() && !named) {
    std::printf("The library's threads have no names; with NCCL_SET_THREAD_NAME=1 they have.\n\n");
  }
}

}  // namespace

int ShowLibrary(const std::string& root, const std::string& path, bool json) {
  const Tree tree(root);
  // Below another root a path is that machine's own.
  std::error_code ignored;
  const std::string whole = tree.live() ? std::filesystem::absolute(path, ignored).string() : path;
  const Result<LibraryFile> file = advise::LookAtLibrary(tree, whole);
  if (!file.ok()) return Fail(file.status());
  const advise::PluginFile plugin = FindOwnPlugin();
  if (json) {
    std::fputs(LibraryJson(file.value(), plugin).c_str(), stdout);
    return kExitFine;
  }
  const LibraryFile& library = file.value();
  std::printf("%s\n", library.path.c_str());
  if (library.real_path != library.path) std::printf("  is %s\n", library.real_path.c_str());
  std::printf("  %s %s%s%s\n", std::string(LibraryTitle(library.library)).c_str(),
              library.version_text.empty() ? advise::VersionOf(library).c_str()
                                           : library.version_text.c_str(),
              library.toolkit.empty() ? "" : ", built for ", library.toolkit.c_str());
  report::Table table({"plugin", "interfaces it looks up", "it would use of ours"});
  table.Add({"tuner", Versions(library.tuner_apis), Common(library.tuner_apis, plugin.tuner_apis)});
  table.Add({"profiler", Versions(library.profiler_apis),
             Common(library.profiler_apis, plugin.profiler_apis)});
  table.Add({"env", Versions(library.env_apis), Common(library.env_apis, plugin.env_apis)});
  table.Add({"net", Versions(library.net_apis), "-"});
  std::fputs(table.Text().c_str(), stdout);
  if (plugin.path.empty()) std::printf("(our plugins are not beside this tool)\n");
  return kExitFine;
}

int ShowProcess(const std::string& root, int pid, bool json, bool all) {
  const Result<advise::ProcessFacts> facts = LookAtProcess(Tree(root), pid);
  if (!facts.ok()) return Fail(facts.status());
  const std::vector<Finding> findings = advise::CheckProcess(facts.value());
  if (json) {
    std::fputs(ProcessJson(facts.value(), findings).c_str(), stdout);
    return ExitStatusOf(findings);
  }
  PrintProcess(facts.value());
  std::fputs(FindingsText(findings, all).c_str(), stdout);
  std::printf("%s\n", FindingsSummary(findings).c_str());
  return ExitStatusOf(findings);
}

int CompareReports(const std::vector<std::string>& paths, bool json, bool all) {
  if (paths.size() > kMostReports) {
    return Fail(Invalid(Format("at most %zu reports at a time", kMostReports)));
  }
  std::vector<advise::HostFacts> hosts;
  for (const std::string& path : paths) {
    Result<advise::HostFacts> host = ReadDoctorReport(path);
    if (!host.ok()) return Fail(host.status());
    hosts.push_back(std::move(host).value());
  }
  const std::vector<Finding> findings = advise::CompareHosts(hosts);
  if (json) {
    std::printf("%s\n", FindingsJson(findings).c_str());
    return ExitStatusOf(findings);
  }
  std::fputs(FindingsText(findings, all).c_str(), stdout);
  size_t same = 0;
  for (const Finding& finding : findings) same += finding.id == "compare.same" ? 1 : 0;
  std::printf("%zu hosts; %s the same on all; %s\n", hosts.size(), Count(same, "fact").c_str(),
              FindingsSummary(findings).c_str());
  return ExitStatusOf(findings);
}

}  // namespace diapason::cli
