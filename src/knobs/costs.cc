#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "domain/plugin_names.h"
#include "domain/setting_conflicts.h"
#include "knobs/context.h"
#include "knobs/values.h"

namespace diapason::knobs {
namespace {

constexpr int kTunerTable = 22203;  // tuner API v3: a table of costs instead of one answer
constexpr size_t kMostEvidence = 12;

// Variables that a site needs for all jobs; setting them in a global file is not suspicious.
constexpr const char* kOfTheSite[] = {"NCCL_SOCKET_IFNAME",  "NCCL_SOCKET_FAMILY",
                                      "NCCL_IB_HCA",         "NCCL_IB_GID_INDEX",
                                      "NCCL_IB_TC",          "NCCL_IB_SL",
                                      "NCCL_IB_PKEY",        "NCCL_IB_ADDR_FAMILY",
                                      "NCCL_IB_ADDR_RANGE",  "NCCL_IB_ROCE_VERSION_NUM",
                                      "NCCL_NET_PLUGIN",     "NCCL_TOPO_FILE",
                                      "NCCL_OOB_NET_ENABLE", "NCCL_OOB_NET_IFNAME"};

bool OnlyLogs(const std::string& name, const Catalogue& catalogue) {
  const Knob* knob = catalogue.Find(name);
  return name.starts_with("NCCL_DEBUG") || (knob != nullptr && knob->group == "debug");
}

void CheckGlobal(const std::vector<Assignment>& assignments, CheckContext* context) {
  if (context->checked_for().file) return;  // the file itself is looked at
  for (const bool costly : {true, false}) {
    Finding finding;
    std::vector<std::string> names;
    size_t beyond = 0;
    for (const Assignment& one : assignments) {
      if (!one.global) continue;
      const bool site = std::any_of(std::begin(kOfTheSite), std::end(kOfTheSite),
                                    [&one](const char* name) { return one.name == name; });
      const bool harmless = one.overridden || site || OnlyLogs(one.name, context->catalogue());
      if (harmless == costly) continue;
      if (finding.evidence.size() < kMostEvidence) {
        finding.evidence.push_back(AssignmentText(one) + (one.overridden ? ", overridden" : ""));
      } else {
        ++beyond;
      }
      names.push_back(one.name);
    }
    if (names.empty()) continue;
    if (beyond > 0) finding.evidence.push_back(Format("and {} more", beyond));
    finding.id = "env.stale-global";
    finding.severity = costly ? Severity::kWarning : Severity::kNote;
    finding.title = Count(names.size(), "setting") + (names.size() == 1 ? " comes" : " come") +
                    " from a file that every job gets" +
                    (costly ? ", and may be tuned for another machine or an older library" : "");
    finding.action = costly ? "Measure without them; keep those that still help, in the job's own "
                              "script"
                            : "";
    context->AddFinding(std::move(finding), names);
  }
}

void CheckLogging(CheckContext* context) {
  if (context->Is("NCCL_DEBUG", "TRACE")) {
    context->Add("env.debug-cost", Severity::kNote,
                 "NCCL_DEBUG=TRACE says more than INFO only in a library built with TRACE=1, and "
                 "that one is slow",
                 {"NCCL_DEBUG"}, "Use INFO, and WARN in production");
  }
  const bool verbose = context->Is("NCCL_DEBUG", "INFO") || context->Is("NCCL_DEBUG", "TRACE");
  if (!verbose || !context->IsSet("NCCL_DEBUG_SUBSYS")) return;
  const std::string list = ToLower(context->Value("NCCL_DEBUG_SUBSYS"));
  bool every_call = list.starts_with("^");
  for (const std::string_view word : Split(list, ',')) {
    every_call = every_call || word == "all" || word == "coll" || word == "call";
  }
  if (every_call && !context->checked_for().file) {
    context->Add("env.debug-cost", Severity::kNote,
                 "every call of every rank writes a line to the log",
                 {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS"},
                 "Use NCCL_DEBUG=WARN in production, or INFO with INIT,ENV,TUNING");
  }
}

void CheckMemory(CheckContext* context) {
  const std::optional<int64_t> bytes = context->Number("NCCL_BUFFSIZE");
  constexpr int64_t kDefault = 4 << 20;
  if (!bytes || *bytes <= kDefault || !context->Reads("NCCL_BUFFSIZE")) return;
  context->Add(
      "env.costly", Severity::kNote,
      Format("NCCL_BUFFSIZE={} is {:.3g} times the default of 4 MiB: every channel to every "
             "peer takes that much more GPU memory",
             *bytes, static_cast<double>(*bytes) / static_cast<double>(kDefault)),
      {"NCCL_BUFFSIZE"}, "Unset it unless it was measured to help here");
}

// One algorithm, or one protocol, for all calls.
void CheckForced(CheckContext* context) {
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
    if (!context->IsSet(name) || context->Spoken(name)) continue;
    const Selection selection = ReadSelection(context->Value(name));
    if (selection.parts.size() != 1) continue;
    const Selection::Part& part = selection.parts[0];
    if (!part.function.empty() || part.negated || part.words.size() != 1) continue;
    context->Add(
        "env.costly", Severity::kNote,
        std::string(name) + "=" + context->Value(name) +
            " holds for every function and every size: the library's own choice by size is "
            "off",
        {name}, "Unset it unless all of it was measured, or name the function it is for");
  }
}

// Files that variables name.
void CheckFiles(CheckContext* context) {
  const RootFs* tree = context->checked_for().tree;
  if (tree == nullptr) return;
  struct Named {
    const char* name;
    const char* what;
  };
  for (const Named& one :
       {Named{"NCCL_TUNER_PLUGIN", "the job runs without a tuner"},
        Named{"NCCL_NET_PLUGIN", "the job runs on the built-in networks"},
        Named{"NCCL_PROFILER_PLUGIN", "the job runs without a profiler"},
        Named{"NCCL_ENV_PLUGIN", "the job runs without it"},
        Named{"NCCL_TOPO_FILE", "the topology is detected again, or the job fails"},
        Named{"NCCL_GRAPH_FILE", "the job fails, or searches again"},
        Named{"NCCL_TUNER_CONFIG_FILE", "the tuner has no rules"},
        Named{"DIAPASON_POLICY", "the plugin has no rules"},
        Named{"DIAPASON_CHAIN", "the job runs without it"},
        Named{"DIAPASON_PROFILER_CHAIN", "the job runs without it"}}) {
    const std::string value = context->Value(one.name);
    if (value.empty() || value[0] != '/' || value.find(',') != std::string::npos) continue;
    if (tree->Exists(value)) continue;
    context->Add("env.bad-value", Severity::kError,
                 std::string(one.name) + " names a file that is not here; " + one.what, {one.name},
                 "Correct the path, or unset it");
  }
}

// Its choice of NVLS for registered buffers is made only where no tuner is loaded, whatever that
// tuner answers.
void CheckCtaPolicy(CheckContext* context) {
  if (context->checked_for().library != Library::kNccl || !context->Reads("NCCL_CTA_POLICY"))
    return;
  const bool by_env = NamesDiapason(context->Value("NCCL_ENV_PLUGIN"));
  if (context->Value("NCCL_TUNER_PLUGIN").empty() && !by_env) return;
  bool efficiency = context->Number("NCCL_CTA_POLICY").value_or(0) % 2 == 1;
  const std::string value = ToLower(context->Value("NCCL_CTA_POLICY"));
  for (const std::string_view word : Split(value, '|')) {
    efficiency = efficiency || Trim(word) == "efficiency";
  }
  if (!efficiency) return;
  context->Add("env.fights-tuner", Severity::kWarning,
               "NCCL_CTA_POLICY=EFFICIENCY chooses NVLS for registered buffers only where no tuner "
               "is loaded: loading any tuner turns that choice off",
               {"NCCL_CTA_POLICY", "NCCL_TUNER_PLUGIN", "NCCL_ENV_PLUGIN"},
               "Measure both; with a tuner, name NVLS in its policy where it is better");
}

}  // namespace

void CheckOwnSettings(CheckContext* context) {
  SettingsSeen seen;
  seen.value = [context](const char* name) { return context->Value(name); };
  const RootFs* tree = context->checked_for().tree;
  if (tree != nullptr) {
    seen.exists = [tree](const std::string& path) { return tree->Exists(path); };
  }
  seen.version = context->checked_for().version;
  for (SettingConflict& one : FindSettingConflicts(seen)) {
    context->Add(std::move(one.id), one.severity, std::move(one.title), one.names,
                 std::move(one.action));
  }
}

void CheckTuner(CheckContext* context) {
  const bool none = context->Is("NCCL_TUNER_PLUGIN", "none");
  std::vector<std::string> tuner;
  if (context->IsSet("NCCL_TUNER_PLUGIN")) tuner.emplace_back("NCCL_TUNER_PLUGIN");
  for (const char* ours :
       {"DIAPASON_MODE", "DIAPASON_POLICY", "DIAPASON_POLICY_INLINE", "NCCL_TUNER_CONFIG_FILE"}) {
    if (context->IsSet(ours)) tuner.emplace_back(ours);
  }
  if (none && tuner.size() > 1) {
    context->Add("env.fights-tuner", Severity::kWarning,
                 "NCCL_TUNER_PLUGIN=none keeps every tuner out, and these settings are for one",
                 tuner, "Name the plugin, or unset the settings");
  }
  if (!none) CheckCtaPolicy(context);
  if (none || tuner.empty() || context->Is("DIAPASON_MODE", "off")) return;
  // The one who wrote the file may know what that tuner answers.
  const bool ours = tuner.size() > 1 || NamesDiapason(context->Value("NCCL_TUNER_PLUGIN"));
  if (context->checked_for().file && !ours) return;
  const int version = context->checked_for().version;
  const std::string old =
      "with " + context->Title() + " up to 2.21 our plugin does not answer at all";
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
    if (context->Value(name).empty()) continue;
    std::string what = std::string(name) + " is applied before the tuner is asked: it ";
    if (version != 0 && version < kTunerTable) {
      what += "leaves nothing to choose, for " + old;
    } else {
      what += "can only choose among what is left";
      if (version == 0) what += "; " + old;
    }
    std::vector<std::string> names = {name};
    names.insert(names.end(), tuner.begin(), tuner.end());
    context->Add("env.fights-tuner", Severity::kWarning, what, names,
                 std::string("Unset ") + name + " and leave the choice to the tuner");
  }
  for (const char* name : {"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NRINGS",
                           "NCCL_MAX_NRINGS", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_NTHREADS"}) {
    if (context->Value(name).empty()) continue;
    std::vector<std::string> names = {name};
    names.insert(names.end(), tuner.begin(), tuner.end());
    const bool threads = std::string(name) == "NCCL_NTHREADS";
    context->Add("env.fights-tuner", Severity::kNote,
                 threads
                     ? "NCCL_NTHREADS sets the threads of every kernel; a tuner cannot change them"
                     : std::string(name) +
                           " bounds the channels a communicator has; a tuner chooses among those",
                 names, std::string("Unset ") + name + " unless it was measured with this tuner");
  }
}

void CheckCosts(const std::vector<Assignment>& assignments, CheckContext* context) {
  // Costs of settings that work are no news to the one who wrote a file.
  const bool file = context->checked_for().file;
  if (!file) CheckMemory(context);
  if (!file) CheckForced(context);
  CheckFiles(context);
  CheckLogging(context);
  CheckGlobal(assignments, context);
}

}  // namespace diapason::knobs
