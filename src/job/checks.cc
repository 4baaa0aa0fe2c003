#include "job/checks.h"

#include <algorithm>

#include "base/root_fs.h"
#include "base/secrets.h"
#include "base/settings.h"
#include "base/text.h"
#include "domain/library_version.h"
#include "knobs/check.h"
#include "launch/rank_environment.h"

namespace diapason::job {
namespace {

constexpr int kFirstTuner = 21900;

// Findings about what a tuner can do. `diapason env check` has the others.
bool ConcernsTuner(const Finding& finding) {
  static constexpr std::string_view kIds[] = {
      "env.fights-tuner", "env.old-library", "env.no-profiler", "env.ras-learning",
      "env.overlap-file", "env.no-learning", "env.no-effect"};
  if (std::find(std::begin(kIds), std::end(kIds), finding.id) != std::end(kIds)) return true;
  // Files that are named and not here.
  return finding.id == "env.bad-value" &&
         std::any_of(finding.evidence.begin(), finding.evidence.end(), [](const std::string& one) {
           return one.find("DIAPASON_CHAIN") != std::string::npos ||
                  one.find("DIAPASON_PROFILER_CHAIN") != std::string::npos;
         });
}

void CheckVariables(const PreparedJob& job, const Environment& ranks,
                    std::vector<Finding>* findings) {
  const RootFs tree;
  knobs::CheckedFor checked_for;
  checked_for.library = job.library.library;
  checked_for.version = job.library.version;
  checked_for.tree = &tree;
  std::vector<knobs::Assignment> assignments = knobs::FromEnvironment(ranks, "environment");
  std::vector<Finding> ignored;
  for (knobs::Assignment& one : knobs::FromConfigFiles(tree, ranks, &ignored, checked_for)) {
    assignments.push_back(std::move(one));
  }
  for (Finding& finding :
       knobs::CheckAssignments(assignments, checked_for, knobs::Catalogue::BuiltIn())) {
    if (finding.severity != Severity::kFine && ConcernsTuner(finding)) {
      // The job runs, if not as it was meant to.
      finding.severity = std::min(finding.severity, Severity::kWarning);
      findings->push_back(std::move(finding));
    }
  }
}

void CheckLibrary(const PreparedJob& job, std::vector<Finding>* findings) {
  if (job.library.version == 0 || job.library.version >= kFirstTuner) return;
  findings->push_back(
      {"job.old-library",
       Severity::kError,
       std::string(LibraryTitle(job.library.library)) + " " +
           LibraryVersionText(job.library.version) +
           " loads no tuner plugin: that needs 2.19 or later",
       {job.library.file + ": " + job.library.WhyText()},
       "Use a newer library; DIAPASON_NCCL_LIBRARY names the one that counts here"});
}

void CheckHosts(const PreparedJob& job, const Environment& ranks, std::vector<Finding>* findings) {
  const std::string store = ranks.Get("DIAPASON_STORE").value_or("");
  const bool known = store.empty() || store == "shm" || store.starts_with("file:/") ||
                     store.starts_with("tcp://") || store.starts_with("redis://");
  if (!known) {
    findings->push_back({"job.bad-store",
                         Severity::kError,
                         "the store is none of shm, file:/FOLDER, tcp://HOST and redis://HOST",
                         {"DIAPASON_STORE=" + MaskSecrets("DIAPASON_STORE", store)},
                         "Correct --store or DIAPASON_STORE"});
  }
  const int hosts = job.command.Starting().hosts;
  if (hosts < 2) return;
  if (AgreesOnCalls(job.mode) && (store.empty() || store == "shm")) {
    findings->push_back(
        {"job.no-store",
         Severity::kError,
         Format("{} on {} hosts needs a store that all of them reach",
                job.mode == JobMode::kLearn  ? "learning"
                : job.mode == JobMode::kTune ? "tuning"
                                             : "comparing",
                hosts),
         {store.empty() ? "DIAPASON_STORE is not set" : "DIAPASON_STORE=shm"},
         "Give --store tcp://HOST:PORT, with a host of the job that all others reach, and "
         "DIAPASON_SECRET_FILE; or --store file:/shared/folder"});
  }
}

// Started once per rank, instead of once before the launcher.
void CheckPlace(const Environment& inherited, std::vector<Finding>* findings) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "LOCAL_RANK"}) {
    if (!inherited.Get(name).has_value() || !launch::SaysPlaceInJob(name)) continue;
    findings->push_back({"job.inside",
                         Severity::kWarning,
                         "this is a rank of a job already: every rank reports only about itself",
                         {std::string(name) + "=" + *inherited.Get(name)},
                         "Put `diapason run ... --` before the launcher, not behind it"});
    return;
  }
}

}  // namespace

MapEnvironment RankEnvironment(const Environment& inherited,
                               const std::vector<RankVariable>& variables) {
  std::map<std::string, std::string> all;
  for (const std::string& name : inherited.Names()) all[name] = inherited.Get(name).value_or("");
  for (const RankVariable& one : variables) all[one.name] = one.value;
  return MapEnvironment(std::move(all));
}

std::vector<Finding> CheckJob(const PreparedJob& job, const Environment& inherited) {
  std::vector<Finding> findings = job.handed.findings;
  const MapEnvironment ranks = RankEnvironment(inherited, job.variables);
  CheckLibrary(job, &findings);
  CheckVariables(job, ranks, &findings);
  CheckHosts(job, ranks, &findings);
  CheckPlace(inherited, &findings);
  const Settings settings = Settings::Read(ranks);
  for (const std::string& problem : settings.problems()) {
    findings.push_back({"job.bad-setting",
                        Severity::kError,
                        problem,
                        {"environment"},
                        "Correct or unset it; `diapason settings` lists the values"});
  }
  SortBySeverity(&findings);
  return findings;
}

}  // namespace diapason::job
