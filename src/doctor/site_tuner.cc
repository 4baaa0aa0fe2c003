#include "doctor/site_tuner.h"

#include <string_view>

#include "base/text.h"
#include "doctor/checks.h"
#include "domain/plugin_names.h"
#include "host/libraries.h"

namespace diapason::doctor {
namespace {

class Variables {
 public:
  explicit Variables(const std::vector<knobs::Assignment>& assignments)
      : assignments_(assignments) {}
  std::string Value(const std::string& name) const {
    for (const knobs::Assignment& one : assignments_) {
      if (one.name == name && !one.overridden) return one.value;
    }
    return "";
  }

 private:
  const std::vector<knobs::Assignment>& assignments_;
};

std::string FirstFile(const PluginNames& names, const RootFs& tree,
                      const Environment& environment) {
  for (const std::string& name : names) {
    const std::string path = host::WouldOpen(name, tree, environment);
    if (!path.empty()) return path;
  }
  return "";
}

// Whether a file ends the search: any other than diapason's own does.
bool Take(const std::string& path, const char* because, const RootFs& tree, SiteTuner* found) {
  if (path.empty()) return false;
  PluginFile file = LookAtPlugin(tree, path);
  if (file.diapason) return false;
  if (!file.tuner_apis.empty()) *found = {std::move(file), because};
  return true;
}

std::string ApisText(const std::vector<int>& apis) {
  std::vector<std::string> words;
  words.reserve(apis.size());
  for (const int api : apis) words.push_back(Format("v{}", api));
  return Join(words, ", ");
}

// RCCL's own tuner is no library: it can be replaced, but not chained.
void CheckBuiltIn(const Variables& variables, std::vector<Finding>* findings) {
  for (const char* name : {"NCCL_TUNER_CONFIG_FILE", "RCCL_TUNER_EMBEDDED_CONFIG"}) {
    const std::string value = variables.Value(name);
    if (value.empty()) continue;
    const bool our_policy = std::string_view(name) == "NCCL_TUNER_CONFIG_FILE" &&
                            variables.Value("DIAPASON_POLICY").empty() &&
                            variables.Value("DIAPASON_POLICY_INLINE").empty();
    AddFinding(findings, "plugin.built-in", Severity::kNote,
               std::string("RCCL's built-in tuner is off while diapason is loaded, and cannot be "
                           "chained") +
                   (our_policy ? "; diapason takes its table as the policy" : ""),
               {std::string(name) + "=" + value});
    return;
  }
}

}  // namespace

SiteTuner FindSiteTuner(const std::string& value, const std::string& network,
                        const knobs::CheckedFor& checked_for, const Environment& environment) {
  SiteTuner found;
  const RootFs& tree = *checked_for.tree;
  const Library library = checked_for.library;
  const int version = checked_for.version;
  if (NamesNoPlugin(value)) return found;
  const bool ours = NamesDiapason(value);
  std::string path;
  if (!value.empty() && !ours) {
    path = FirstFile(TunerPluginNames(library, version, value), tree, environment);
    if (Take(path, "NCCL_TUNER_PLUGIN", tree, &found)) return found;
  }
  if (!SearchesForTuner(version)) return found;
  // A name that leads to nothing is followed by the network plugin; diapason's counts as not set.
  if (value.empty() || ours || !path.empty()) {
    path = FirstFile(TunerPluginNames(library, version, ""), tree, environment);
    if (Take(path, "the library's default name", tree, &found)) return found;
  }
  for (const PluginNames& names : NetPluginNames(library, version, network)) {
    path = FirstFile(names, tree, environment);
    if (Take(path, "inside the network plugin", tree, &found)) return found;
  }
  return found;
}

std::vector<Finding> CheckSiteTuner(const std::vector<knobs::Assignment>& assignments,
                                    const knobs::CheckedFor& checked_for,
                                    const Environment& environment) {
  std::vector<Finding> findings;
  if (checked_for.tree == nullptr) return findings;
  const Variables variables(assignments);
  const std::string tuner = variables.Value("NCCL_TUNER_PLUGIN");
  const bool loaded = NamesDiapason(tuner) || NamesDiapason(variables.Value("NCCL_ENV_PLUGIN"));
  if (loaded && checked_for.library == Library::kRccl) CheckBuiltIn(variables, &findings);
  const std::string chain = loaded ? variables.Value("DIAPASON_CHAIN") : "";
  const bool off = NamesNoPlugin(chain);
  SiteTuner site = FindSiteTuner(chain.empty() || off ? tuner : chain,
                                 variables.Value("NCCL_NET_PLUGIN"), checked_for, environment);
  if (site.file.path.empty()) return findings;
  if (!chain.empty() && !off && site.because == "NCCL_TUNER_PLUGIN")
    site.because = "DIAPASON_CHAIN";
  const std::string evidence =
      Format("{}: tuner {} ({})", site.file.path, ApisText(site.file.tuner_apis), site.because);
  if (off) {
    AddFinding(&findings, "plugin.chain", Severity::kNote,
               "the tuner that the library would load without diapason is not used", {evidence},
               "unset DIAPASON_CHAIN, which is none, to keep it in use");
  } else if (loaded) {
    AddFinding(&findings, "plugin.chain", Severity::kNote,
               "diapason asks another tuner first, and its answers are the default", {evidence});
  } else {
    AddFinding(&findings, "plugin.chain", Severity::kNote,
               "the library would load a tuner; with diapason it stays in use", {evidence});
  }
  return findings;
}

}  // namespace diapason::doctor
