#include "doctor/facts.h"

#include <algorithm>

#include "base/text.h"
#include "doctor/site_profiler.h"
#include "doctor/site_tuner.h"
#include "domain/library_version.h"
#include "host/elf.h"
#include "host/paths.h"

namespace diapason::doctor {
namespace {

constexpr int kMostApi = 99;

// The versions after `stem` in NUL-separated names.
std::vector<int> VersionsIn(const std::string& names, std::string_view stem) {
  std::vector<int> versions;
  for (const std::string_view name : Split(names, '\0')) {
    uint64_t version = 0;
    if (name.starts_with(stem) && ParseUnsigned(name.substr(stem.size()), &version) &&
        version > 0 && version <= kMostApi) {
      versions.push_back(static_cast<int>(version));
    }
  }
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  return versions;
}

// By the vendor of the GPUs; without GPUs, the first library for which there is a file.
host::JobLibrary FindJob(const RootFs& tree, const Environment& environment, CheckInputs* facts) {
  const auto find = [&](Library library) {
    return host::FindJobLibrary(tree, environment, library, facts->torch, &facts->libraries);
  };
  if (facts->amd()) return find(Library::kRccl);
  host::JobLibrary nccl = find(Library::kNccl);
  if (!facts->machine.gpus.empty() || !nccl.file.empty()) return nccl;
  host::JobLibrary rccl = find(Library::kRccl);
  return rccl.file.empty() ? nccl : rccl;
}

}  // namespace

PluginFile LookAtPlugin(const RootFs& tree, const std::string& path) {
  PluginFile plugin;
  plugin.path = path;
  const Result<host::ElfFile> file = host::ElfFile::Open(tree.Place(host::RealPath(tree, path)));
  if (!file.ok()) {
    plugin.trouble = file.status().message();
    return plugin;
  }
  const std::string names = file.value().SymbolNames();
  plugin.tuner_apis = VersionsIn(names, "ncclTunerPlugin_v");
  plugin.profiler_apis = VersionsIn(names, "ncclProfiler_v");
  plugin.env_apis = VersionsIn(names, "ncclEnvPlugin_v");
  const std::vector<std::string_view> all = Split(names, '\0');
  plugin.diapason = std::find(all.begin(), all.end(), "diapason_version") != all.end();
  if (plugin.tuner_apis.empty()) plugin.trouble = path + ": offers no tuner interface";
  return plugin;
}

int CommonApi(const std::vector<int>& looked_up, const std::vector<int>& offered) {
  int best = 0;
  for (const int version : looked_up) {
    if (std::find(offered.begin(), offered.end(), version) != offered.end()) {
      best = std::max(best, version);
    }
  }
  return best;
}

const host::LibraryFile* CheckInputs::FileAt(const std::string& path) const {
  for (const host::LibraryFile& file : libraries) {
    if (!path.empty() && (file.path == path || file.real_path == path)) return &file;
  }
  return nullptr;
}

const host::LibraryFile* CheckInputs::Loaded() const { return FileAt(job.file); }

std::string CheckInputs::Variable(const std::string& name) const {
  for (const knobs::Assignment& one : assignments) {
    if (one.name == name && !one.overridden) return one.value;
  }
  return "";
}

std::string VersionOf(const host::LibraryFile& file) {
  const std::string version = LibraryVersionText(file.version);
  if (!version.empty()) return version;
  return file.version_text.empty() ? "of unknown version" : file.version_text;
}

CheckInputs GatherFacts(const RootFs& tree, const Environment& environment) {
  CheckInputs facts;
  facts.live = tree.live();
  facts.machine = host::LookAtMachine(tree, environment);
  facts.system = host::LookAtSystem(tree, facts.machine);
  facts.kernel_log = host::ReadKernelLog(tree);
  facts.libraries = host::FindLibraries(tree, environment);
  facts.nccl = host::WouldLoad(facts.libraries, Library::kNccl, tree, environment);
  facts.rccl = host::WouldLoad(facts.libraries, Library::kRccl, tree, environment);
  facts.torch = host::FindTorch(tree, environment, facts.libraries);
  facts.job = FindJob(tree, environment, &facts);

  knobs::CheckedFor checked_for;
  checked_for.tree = &tree;
  checked_for.library = facts.amd() ? Library::kRccl : Library::kNccl;
  if (const host::LibraryFile* file = facts.Loaded()) {
    checked_for.library = file->library;
    checked_for.version = file->version;
  }
  facts.assignments = knobs::FromEnvironment(environment, "environment");
  const std::vector<knobs::Assignment> files =
      knobs::FromConfigFiles(tree, environment, &facts.environment, checked_for);
  facts.assignments.insert(facts.assignments.end(), files.begin(), files.end());
  const std::vector<Finding> findings =
      knobs::CheckAssignments(facts.assignments, checked_for, knobs::Catalogue::BuiltIn());
  facts.environment.insert(facts.environment.end(), findings.begin(), findings.end());
  const std::vector<Finding> chained = CheckSiteTuner(facts.assignments, checked_for, environment);
  facts.environment.insert(facts.environment.end(), chained.begin(), chained.end());
  const std::vector<Finding> profiler =
      CheckSiteProfiler(facts.assignments, checked_for, environment);
  facts.environment.insert(facts.environment.end(), profiler.begin(), profiler.end());
  const std::string selected = facts.Variable("NCCL_TUNER_PLUGIN");
  if (selected.starts_with('/')) facts.selected = LookAtPlugin(tree, selected);
  return facts;
}

}  // namespace diapason::doctor
