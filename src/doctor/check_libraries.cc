#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/checks.h"
#include "domain/library_version.h"

namespace diapason::doctor {
namespace {

constexpr int kFirstSupported = 21800;
constexpr int kFirstTuner = 21900;

std::string Of(const host::LibraryFile& file) {
  return file.path + ": " + std::string(LibraryTitle(file.library)) + " " +
         (file.version_text.empty() ? VersionOf(file) : file.version_text) +
         (file.found_by.empty() ? "" : " (" + file.found_by + ")");
}

// "CUDA 12.4" -> 12, 4.
bool ToolkitNumbers(const std::string& toolkit, int* major, int* minor) {
  return std::sscanf(toolkit.c_str(), "CUDA %4d.%4d", major, minor) == 2;
}

void CheckToolkit(const CheckInputs& facts, const host::LibraryFile& file,
                  std::vector<Finding>* findings) {
  int built_major = 0;
  int built_minor = 0;
  int driver_major = 0;
  int driver_minor = 0;
  if (!ToolkitNumbers(file.toolkit, &built_major, &built_minor) ||
      !ToolkitNumbers(facts.machine.driver_supports, &driver_major, &driver_minor)) {
    return;
  }
  const std::vector<std::string> evidence = {
      Of(file), "driver " + facts.machine.driver + ": up to " + facts.machine.driver_supports};
  if (built_major > driver_major) {
    AddFinding(
        findings, "library.toolkit", Severity::kError,
        "the library was built for " + file.toolkit + ", the driver supports " +
            facts.machine.driver_supports + ": it starts only with a compatibility package",
        evidence,
        Format("update the driver, or install the library's build for CUDA {}", driver_major));
  } else if (built_major == driver_major && built_minor > driver_minor) {
    AddFinding(findings, "library.toolkit", Severity::kNote,
               "the library was built for " + file.toolkit + ", the driver supports " +
                   facts.machine.driver_supports + "; within one major version that works",
               evidence);
  } else {
    AddFinding(findings, "library.toolkit", Severity::kFine,
               "the driver (" + facts.machine.driver_supports + ") supports the library's " +
                   file.toolkit);
  }
}

void CheckCopies(const CheckInputs& facts, std::vector<Finding>* findings) {
  std::map<Library, std::set<int>> versions;
  std::vector<std::string> evidence;
  for (const host::LibraryFile& file : facts.libraries) {
    versions[file.library].insert(file.version);
    evidence.push_back(Of(file));
  }
  for (const auto& [library, known] : versions) {
    if (known.size() < 2) continue;
    const host::LibraryFile* loaded =
        facts.FileAt(library == Library::kRccl ? facts.rccl : facts.nccl);
    std::string title = Format("{} versions of {} are in reach; ", known.size(),
                               std::string(LibraryTitle(library))) +
                        (loaded == nullptr ? "the loader finds none of them by itself"
                                           : "a program gets " + VersionOf(*loaded));
    for (const host::Torch& torch : facts.torch) {
      const host::LibraryFile* its = facts.FileAt(torch.loads);
      if (its != nullptr && its != loaded && its->library == library) {
        title += ", PyTorch " + torch.version + " gets " + VersionOf(*its);
      }
    }
    AddFinding(findings, "library.several", Severity::kWarning, title, evidence,
               "remove those that are not wanted, or name one in LD_LIBRARY_PATH on every host");
  }
}

void CheckNewer(const host::LibraryFile& file, std::vector<Finding>* findings) {
  const int newest = knobs::Catalogue::NewestKnown(file.library);
  if (file.version <= newest) return;
  AddFinding(findings, "library.newer", Severity::kNote,
             std::string(LibraryTitle(file.library)) + " " + VersionOf(file) +
                 " is newer than the versions that this release of diapason knows (up to " +
                 LibraryVersionText(newest) + "): variables that it does not know may be read",
             {Of(file)});
}

}  // namespace

void CheckLibraries(const CheckInputs& facts, std::vector<Finding>* findings) {
  const bool has_gpus = !facts.machine.gpus.empty();
  const char* wanted = facts.amd() ? "RCCL" : "NCCL";
  const host::LibraryFile* file = facts.Loaded();
  if (facts.libraries.empty()) {
    const bool inside =
        std::any_of(facts.torch.begin(), facts.torch.end(),
                    [](const host::Torch& one) { return one.with_nccl && !one.library_apart; });
    AddFinding(
        findings, "library.none", has_gpus && !inside ? Severity::kError : Severity::kNote,
        has_gpus ? (inside ? Format("{} is found inside PyTorch only", wanted)
                           : Format("no {} is found", wanted))
                 : std::string("no NCCL and no RCCL is found"),
        {"looked in LD_LIBRARY_PATH, the loader's cache, CUDA's and ROCm's folders, Python's "
         "packages"},
        has_gpus && !inside ? Format("install {}, or name its folder in LD_LIBRARY_PATH", wanted)
                            : "");
    return;
  }
  CheckCopies(facts, findings);
  if (file == nullptr) {
    const bool other = has_gpus;
    AddFinding(findings, "library.unreached", other ? Severity::kWarning : Severity::kNote,
               Format("{} found, but a program that needs {} would not find it",
                      Count(facts.libraries.size(), "library file"), wanted),
               {Of(facts.libraries[0])}, "name its folder in LD_LIBRARY_PATH, or run ldconfig");
    return;
  }
  if (has_gpus && (file->library == Library::kRccl) != facts.amd()) {
    AddFinding(findings, "library.vendor", Severity::kError,
               Format("the GPUs are {}, and the library found is {}",
                      facts.amd() ? "AMD's" : "NVIDIA's", std::string(LibraryTitle(file->library))),
               {Of(*file)}, Format("install {}", wanted));
    return;
  }
  CheckToolkit(facts, *file, findings);
  if (file->version > 0 && file->version < kFirstSupported) {
    AddFinding(findings, "library.old", Severity::kWarning,
               std::string(LibraryTitle(file->library)) + " " + VersionOf(*file) +
                   " is old: 2.18 is the least for the backend here, 2.19 for a tuner plugin",
               {Of(*file)}, "install a newer one");
  } else {
    AddFinding(findings, "library.version", Severity::kFine,
               std::string(facts.job.by_name ? "a program gets " : "the job gets ") +
                   std::string(LibraryTitle(file->library)) + " " + VersionOf(*file),
               {Of(*file)});
  }
  CheckNewer(*file, findings);
}

void CheckTorch(const CheckInputs& facts, std::vector<Finding>* findings) {
  for (const host::Torch& torch : facts.torch) {
    const std::string name = "PyTorch " + torch.version;
    if (!facts.machine.gpus.empty() && torch.toolkit.empty()) {
      AddFinding(findings, "torch.cpu-only", Severity::kWarning, name + " is built for CPUs only",
                 {torch.folder + "/version.py"}, "install a build for this machine's GPUs");
      continue;
    }
    if (!torch.toolkit.empty() && !torch.with_nccl) {
      AddFinding(findings, "torch.no-nccl", Severity::kError,
                 name + " is built without NCCL or RCCL", {torch.folder + "/lib"},
                 "install a build with it");
      continue;
    }
    const host::LibraryFile* loads = facts.FileAt(torch.loads);
    const host::LibraryFile* own = facts.FileAt(torch.own);
    if (loads != nullptr && own != nullptr && loads != own) {
      AddFinding(findings, "torch.shadowed",
                 loads->version == own->version ? Severity::kNote : Severity::kWarning,
                 Format("{} brings {}, but would load {} through {}", name, VersionOf(*own),
                        VersionOf(*loads), torch.taken_because),
                 {Of(*own), Of(*loads)},
                 "take the folder out of " + torch.taken_because + " unless you want this");
      continue;
    }
    const std::string what = torch.toolkit.empty()  ? "for CPUs"
                             : !torch.library_apart ? torch.toolkit + ", with the library inside"
                             : loads == nullptr ? torch.toolkit + ", and its library is not found"
                                                : torch.toolkit + ", loads " + VersionOf(*loads);
    const bool lost = torch.library_apart && !torch.toolkit.empty() && loads == nullptr;
    AddFinding(findings, "torch.present", lost ? Severity::kWarning : Severity::kFine,
               name + ": " + what, {torch.folder});
  }
}

void CheckPlugin(const CheckInputs& facts, std::vector<Finding>* findings) {
  const host::LibraryFile* file = facts.Loaded();
  const std::string chosen = facts.Variable("NCCL_TUNER_PLUGIN");
  const PluginFile& plugin = facts.selected.path.empty() ? facts.plugin : facts.selected;
  if (!facts.selected.path.empty() && !facts.selected.trouble.empty()) {
    AddFinding(findings, "plugin.selected", Severity::kError,
               "NCCL_TUNER_PLUGIN names a file that the library cannot use as a tuner",
               {facts.selected.trouble}, "name a tuner plugin's full path");
    return;
  }
  if (plugin.path.empty()) return;
  if (!plugin.trouble.empty()) {
    AddFinding(findings, "plugin.broken", Severity::kError, "the tuner plugin does not load",
               {plugin.trouble}, "install diapason again");
    return;
  }
  if (file == nullptr) {
    AddFinding(findings, "plugin.loads", Severity::kFine,
               "the tuner plugin loads; there is no library here to use it", {plugin.path});
    return;
  }
  const std::string title = std::string(LibraryTitle(file->library)) + " " + VersionOf(*file);
  const int tuner = CommonApi(file->tuner_apis, plugin.tuner_apis);
  if (tuner == 0) {
    AddFinding(findings, "plugin.interface", chosen.empty() ? Severity::kNote : Severity::kError,
               title + (file->version > 0 && file->version < kFirstTuner
                            ? " has no tuner interface: plugins need 2.19"
                            : " and the tuner plugin have no interface version in common"),
               {Of(*file), plugin.path}, "use a newer library");
    return;
  }
  const int profiler = CommonApi(file->profiler_apis, plugin.profiler_apis);
  std::string detail = Format("tuner v{}", tuner);
  if (profiler > 0) detail += Format(", profiler v{}", profiler);
  const int env = CommonApi(file->env_apis, plugin.env_apis);
  if (env > 0) detail += Format(", env v{}", env);
  AddFinding(
      findings, "plugin.interface", Severity::kFine, title + " would use the plugin's " + detail,
      {plugin.path + (chosen.empty() ? " (not selected: NCCL_TUNER_PLUGIN is not set)" : "")});
}

}  // namespace diapason::doctor
