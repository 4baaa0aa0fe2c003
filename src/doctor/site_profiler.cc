#include "doctor/site_profiler.h"

#include <optional>
#include <string>

#include "base/text.h"
#include "doctor/checks.h"
#include "doctor/facts.h"
#include "domain/plugin_names.h"
#include "host/libraries.h"

namespace diapason::doctor {
namespace {

constexpr int kFirstWithEnvPlugin = 22807;

class Search {
 public:
  Search(const std::vector<knobs::Assignment>& assignments, const knobs::CheckedFor& checked_for,
         const Environment& environment)
      : assignments_(assignments), checked_for_(checked_for), environment_(environment) {}

  // nullopt: not set.
  std::optional<std::string> Variable(const std::string& name) const {
    for (const knobs::Assignment& one : assignments_) {
      if (one.name == name && !one.overridden) return one.value;
    }
    return std::nullopt;
  }
  // The file by which the loader would satisfy one of these names; no path for none.
  PluginFile File(const PluginNames& names) const {
    for (const std::string& name : names) {
      const std::string path = host::WouldOpen(name, *checked_for_.tree, environment_);
      if (!path.empty()) return LookAtPlugin(*checked_for_.tree, path);
    }
    return {};
  }
  PluginFile Named(const std::string& value) const {
    return File(ProfilerPluginNames(checked_for_.library, checked_for_.version, value));
  }
  PluginFile Network() const {
    const std::string value = Variable("NCCL_NET_PLUGIN").value_or("");
    for (const PluginNames& names :
         NetPluginNames(checked_for_.library, checked_for_.version, value)) {
      PluginFile file = File(names);
      if (!file.path.empty() && !file.diapason && !file.profiler_apis.empty()) return file;
    }
    return {};
  }
  // The env plugin answers diapason's file in place of the site's profiler.
  bool StandsInItsPlace() const {
    const int version = checked_for_.version;
    return NamesDiapason(Variable("NCCL_ENV_PLUGIN").value_or("")) &&
           (version == 0 || version >= kFirstWithEnvPlugin);
  }

  // What the library would load where diapason stands in its place.
  PluginFile Displaced(std::string* because) const {
    const std::optional<std::string> value = Variable("NCCL_PROFILER_PLUGIN");
    PluginFile file;
    if (value.has_value()) {
      *because = "NCCL_PROFILER_PLUGIN";
      file = Named(*value);
    } else {
      *because = "the library's default name";
      file = Named("");
      if (file.diapason) file = {};
    }
    if (!file.path.empty()) return file;
    *because = "inside the network plugin";
    return Network();
  }

 private:
  const std::vector<knobs::Assignment>& assignments_;
  const knobs::CheckedFor& checked_for_;
  const Environment& environment_;
};

}  // namespace

std::vector<Finding> CheckSiteProfiler(const std::vector<knobs::Assignment>& assignments,
                                       const knobs::CheckedFor& checked_for,
                                       const Environment& environment) {
  std::vector<Finding> findings;
  if (checked_for.tree == nullptr) return findings;
  const Search search(assignments, checked_for, environment);
  const std::optional<std::string> profiler = search.Variable("NCCL_PROFILER_PLUGIN");
  const bool none = profiler.has_value() && (profiler->empty() || NamesNoPlugin(*profiler));
  const bool chosen = NamesDiapason(profiler.value_or(""));
  const bool in_place = !chosen && !none && search.StandsInItsPlace();
  if ((!chosen && !in_place) || ToLower(search.Variable("DIAPASON_MODE").value_or("")) == "off") {
    return findings;
  }
  const std::string chain = search.Variable("DIAPASON_PROFILER_CHAIN").value_or("");
  const bool off = NamesNoPlugin(chain);
  std::string because = "DIAPASON_PROFILER_CHAIN";
  PluginFile file;
  if (!chain.empty() && !off) {
    file = search.Named(chain);
    if (file.path.empty() && !chain.starts_with('/')) {
      AddFinding(&findings, "plugin.profiler-chain", Severity::kWarning,
                 "the profiler to be chained is not found: the job runs without it",
                 {"DIAPASON_PROFILER_CHAIN=" + chain}, "name its file with the full path");
    }
  } else if (in_place) {
    file = search.Displaced(&because);
  }
  if (file.path.empty() || file.diapason) return findings;
  if (file.profiler_apis.empty()) {
    AddFinding(&findings, "plugin.profiler-chain", Severity::kWarning,
               "the profiler to be chained has no profiler interface: the job runs without it",
               {file.path + " (" + because + ")"}, "name a profiler plugin");
    return findings;
  }
  std::vector<std::string> versions;
  versions.reserve(file.profiler_apis.size());
  for (const int api : file.profiler_apis) versions.push_back(Format("v{}", api));
  AddFinding(&findings, "plugin.profiler-chain", Severity::kNote,
             off ? "the profiler that the library would load without diapason is not used"
                 : "diapason passes events on to another profiler, which gets what it asks for",
             {Format("{}: profiler {} ({})", file.path, Join(versions, ", "), because)},
             off ? "unset DIAPASON_PROFILER_CHAIN, which is none, to keep it in use" : "");
  return findings;
}

}  // namespace diapason::doctor
