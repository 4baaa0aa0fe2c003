#include "domain/setting_conflicts.h"

#include <string_view>

#include "base/text.h"
#include "domain/library_version.h"
#include "domain/plugin_names.h"

namespace diapason {
namespace {

constexpr int kFirstThatLearns = 22800;
constexpr int kFirstWithEnvPlugin = 22807;
constexpr int kFirstWithRasControl = 23100;

// Read while learning, and never otherwise.
constexpr const char* kForLearning[] = {
    "NCCL_TUNER_EPS",          "DIAPASON_EPSILON",     "DIAPASON_STRATEGY",
    "NCCL_TUNER_REWARD_FILE",  "DIAPASON_REWARD_FILE", "DIAPASON_REWARD",
    "DIAPASON_ARMS",           "DIAPASON_MARGIN",      "DIAPASON_FREEZE_FILE",
    "DIAPASON_EXPLORE_BUDGET", "DIAPASON_LEARN_MEMORY"};

class Finder {
 public:
  explicit Finder(const SettingsSeen& seen) : seen_(seen) {}

  std::vector<SettingConflict> Find() {
    const bool learns = Word("DIAPASON_MODE") == "learn";
    const bool compares = Word("DIAPASON_MODE") == "compare";
    const bool tuned = Word("DIAPASON_MODE") == "tune";
    learns ? CheckEpsilon() : CheckUnusedByMode();
    if ((learns || compares || tuned) && !seen_.loaded) CheckLearning();
    if (compares) CheckCompared();
    if (seen_.loaded) {
      CheckPaths();
    } else {
      CheckOverlap();
    }
    return std::move(found_);
  }

 private:
  std::string Value(const char* name) const { return seen_.value(name); }
  std::string Word(const char* name) const { return ToLower(Trim(Value(name))); }
  bool Is(const char* name) const { return !Value(name).empty(); }
  bool Flag(const char* name) const {
    const std::string word = Word(name);
    return word == "1" || word == "true" || word == "yes" || word == "on";
  }
  // The names that begin with NCCL_ are older than diapason, and other tuners read them too.
  bool IsForAnother(std::string_view name) const {
    const std::string tuner = Value("NCCL_TUNER_PLUGIN");
    return name.starts_with("NCCL_") && !seen_.loaded && !tuner.empty() && !NamesDiapason(tuner) &&
           !NamesDiapason(Value("NCCL_ENV_PLUGIN")) && !Is("DIAPASON_MODE") &&
           !Is("DIAPASON_POLICY");
  }
  void Add(const char* id, Severity severity, std::string title, std::vector<std::string> names,
           std::string action) {
    found_.push_back({id, severity, std::move(title), std::move(names), std::move(action)});
  }

  void CheckUnusedByMode() {
    std::vector<std::string> names;
    for (const char* name : kForLearning) {
      if (Is(name) && !IsForAnother(name)) names.emplace_back(name);
    }
    if (names.empty()) return;
    const std::string mode = Is("DIAPASON_MODE") ? Word("DIAPASON_MODE") : "not set";
    const std::string title = Join(names, ", ") +
                              (names.size() == 1 ? " has an effect" : " have an effect") +
                              " only while learning, and DIAPASON_MODE is " + mode;
    names.emplace_back("DIAPASON_MODE");
    Add("env.no-learning", Severity::kWarning, title, std::move(names),
        "Set DIAPASON_MODE=learn, or unset what is for learning");
  }

  void CheckEpsilon() {
    if (Word("DIAPASON_STRATEGY") == "epsilon") return;
    for (const char* name : {"NCCL_TUNER_EPS", "DIAPASON_EPSILON"}) {
      if (!Is(name)) continue;
      Add("env.no-effect", Severity::kNote,
          std::string(name) +
              " is the share of random trials of the strategy epsilon, which is "
              "not the one in use",
          {name, "DIAPASON_STRATEGY"}, "Set DIAPASON_STRATEGY=epsilon, or unset it");
    }
  }

  void CheckCompared() {
    for (const char* name :
         {"DIAPASON_POLICY", "NCCL_TUNER_CONFIG_FILE", "DIAPASON_POLICY_INLINE"}) {
      if (Is(name)) return;
    }
    Add("env.nothing-to-compare", Severity::kWarning,
        "DIAPASON_MODE=compare runs the default and a policy in turns, and no policy is set",
        {"DIAPASON_MODE", "DIAPASON_POLICY"},
        "Set DIAPASON_POLICY to the policy that should be compared with the default");
  }

  // What keeps a job from learning, or from comparing, although it should.
  void CheckLearning() {
    const std::string mode = "DIAPASON_MODE=" + Word("DIAPASON_MODE");
    const std::string word = Word("DIAPASON_MODE");
    const std::string done = word == "learn" ? "learned" : word == "tune" ? "tried" : "compared";
    const std::vector<std::string> names = {"DIAPASON_MODE", "NCCL_TUNER_PLUGIN",
                                            "NCCL_PROFILER_PLUGIN", "NCCL_ENV_PLUGIN"};
    if (seen_.version != 0 && seen_.version < kFirstThatLearns) {
      Add("env.old-library", Severity::kWarning,
          mode + " needs library 2.28 or later, and this is " + LibraryVersionText(seen_.version) +
              ": the policy is applied, and nothing is " + done,
          {"DIAPASON_MODE"}, "Use a newer library, or DIAPASON_MODE=static");
      return;
    }
    if (!Is("NCCL_TUNER_PLUGIN") && !Is("NCCL_ENV_PLUGIN")) {
      Add("env.inert", Severity::kNote,
          mode +
              " has no effect unless the plugin is loaded, and neither NCCL_TUNER_PLUGIN nor "
              "NCCL_ENV_PLUGIN is set here",
          {"DIAPASON_MODE"},
          "Set NCCL_TUNER_PLUGIN and NCCL_PROFILER_PLUGIN to the plugin, or call diapason.init()");
    } else if (!HasProfilerHalf()) {
      const std::string profiler = Value("NCCL_PROFILER_PLUGIN");
      Add("env.no-profiler", Severity::kWarning,
          mode + " needs the profiler half of the plugin, and NCCL_PROFILER_PLUGIN " +
              (profiler.empty() ? std::string("is not set") : "is '" + profiler + "'") +
              ": nothing is " + done + " or applied",
          names,
          "Set NCCL_PROFILER_PLUGIN to the same file as NCCL_TUNER_PLUGIN" +
              std::string(profiler.empty() || NamesNoPlugin(profiler)
                              ? ""
                              : ", and DIAPASON_PROFILER_CHAIN to the profiler"));
    }
    if (seen_.version >= kFirstWithRasControl && Trim(Value("NCCL_RAS_ENABLE")) != "0") {
      Add("env.ras-learning", Severity::kWarning,
          "from 2.31 on nothing is " + done +
              " unless NCCL_RAS_ENABLE=0: the RAS client can change the events by which ranks "
              "count calls",
          {"DIAPASON_MODE", "NCCL_RAS_ENABLE"}, "Set NCCL_RAS_ENABLE=0 on all ranks");
    }
  }

  bool HasProfilerHalf() const {
    const std::string profiler = Value("NCCL_PROFILER_PLUGIN");
    if (NamesDiapason(profiler)) return true;
    if (!profiler.empty() && profiler == Value("NCCL_TUNER_PLUGIN")) return true;  // renamed
    if (!NamesDiapason(Value("NCCL_ENV_PLUGIN"))) return false;
    // The env plugin answers our file for every name but this one.
    return !NamesNoPlugin(profiler) && (seen_.version == 0 || seen_.version >= kFirstWithEnvPlugin);
  }

  // The files of the plugin's two other halves; the library says nothing of a name it cannot open.
  void CheckPaths() {
    for (const char* name : {"NCCL_PROFILER_PLUGIN", "NCCL_ENV_PLUGIN"}) {
      const std::string path = Value(name);
      if (!path.starts_with('/') || !seen_.exists || seen_.exists(path)) continue;
      Add("env.bad-value", Severity::kWarning, std::string(name) + " names a file that is not here",
          {name}, "Correct the path, or unset it");
    }
  }

  void CheckOverlap() {
    const char* flag = Is("DIAPASON_OVERLAP") ? "DIAPASON_OVERLAP" : "NCCL_WORKLOAD_OVERLAP";
    if (!Flag(flag) || IsForAnother(flag) || Word("DIAPASON_MODE") == "off") return;
    if (Is("DIAPASON_POLICY_INLINE")) {
      Add("env.no-effect", Severity::kNote,
          std::string(flag) +
              " chooses between policy files, and DIAPASON_POLICY_INLINE wins over "
              "all of them",
          {flag, "DIAPASON_POLICY_INLINE"}, "Unset one of them");
      return;
    }
    const char* named = "DIAPASON_POLICY_OVERLAP";
    std::string path = Value(named);
    if (path.empty()) {
      named = Is("DIAPASON_POLICY") ? "DIAPASON_POLICY" : "NCCL_TUNER_CONFIG_FILE";
      path = Value(named);
      if (path.empty()) {
        if (Is("DIAPASON_LEARNED") || Word("DIAPASON_MODE") == "learn") return;
        Add("env.overlap-file", Severity::kWarning,
            std::string(flag) + " chooses the policy for overlap, and no policy is set", {flag},
            "Set DIAPASON_POLICY or DIAPASON_POLICY_OVERLAP, or unset it");
        return;
      }
      path = OverlapSibling(path);
    }
    if (!seen_.exists || !path.starts_with('/') || seen_.exists(path)) return;
    Add("env.overlap-file", Severity::kError,
        std::string(flag) + " is on, and the policy for overlap, " + path +
            ", is not here: the library decides",
        {flag, named},
        "Make that file, name another in DIAPASON_POLICY_OVERLAP, or unset the flag");
  }

  const SettingsSeen& seen_;
  std::vector<SettingConflict> found_;
};

}  // namespace

std::vector<SettingConflict> FindSettingConflicts(const SettingsSeen& seen) {
  return Finder(seen).Find();
}

std::string OverlapSibling(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  // A leading dot is part of the name, not an extension.
  const bool has_extension = dot != std::string::npos && dot > name;
  return (has_extension ? path.substr(0, dot) : path) + ".overlap.conf";
}

}  // namespace diapason
