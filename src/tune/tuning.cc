#include "tune/tuning.h"

#include <filesystem>
#include <memory>

#include "base/environment.h"
#include "base/file.h"
#include "base/owner_lock.h"
#include "base/settings.h"
#include "base/text.h"
#include "measure/group_measurer.h"
#include "policy/openmpi_rules.h"
#include "policy/origin.h"
#include "policy/parse.h"
#include "report/write_report.h"
#include "search/make_measurer.h"

namespace diapason::tune {
namespace {

using measure::Measurer;
using measure::Subject;

void Warn(const TuningEvents& events, const std::string& text) {
  if (events.warn) events.warn(text);
}

Result<TuneFiles> PrepareFolder(const std::string& output) {
  std::error_code error;
  std::filesystem::create_directories(output, error);
  if (error) return IoError("cannot create the folder '" + output + "': " + error.message());
  const std::filesystem::path folder = std::filesystem::absolute(output, error).lexically_normal();
  TuneFiles files;
  files.folder = folder.string();
  files.policy = (folder / "policy.conf").string();
  files.store = (folder / "measurements.db").string();
  files.report = (folder / "report.html").string();
  return files;
}

// The policy in all forms, and the report. Only the policy is worth failing for. What an earlier
// run has written is not thrown away.
Status WriteFiles(const TuneOutcome& outcome, const TuneGoal& goal, const TuningEvents& events,
                  TuneFiles* files) {
  const std::filesystem::path folder(files->folder);
  const Result<std::string> before = ReadFile(files->policy, policy::kMostBytes);
  if (before.ok() && before.value() != outcome.policy_text) {
    files->older = (folder / "policy.old.conf").string();
    RETURN_IF_ERROR(WriteFileAtomically(files->older, before.value()));
  }
  std::error_code ignored;
  std::filesystem::remove(folder / "rules.conf", ignored);
  RETURN_IF_ERROR(WriteFileAtomically(files->policy, outcome.policy_text));
  if (outcome.subject.library == Library::kOpenMpi) {
    std::vector<std::string> notes;
    ASSIGN_OR_RETURN(const std::string rules, policy::OpenMpiRulesText(outcome.policy, &notes));
    for (const std::string& note : notes) Warn(events, note);
    files->rules = (folder / "rules.conf").string();
    RETURN_IF_ERROR(WriteFileAtomically(files->rules, rules));
  }
  report::ReportRequest request;
  request.inputs = {files->store};
  request.policies = {files->policy};
  request.output = files->report;
  request.headline = outcome.Headline(goal.step.has_value());
  const Result<report::ReportMade> report = report::WriteReport(request);
  if (!report.ok()) {
    Warn(events, "the report was not written: " + report.status().message());
    files->report.clear();
  }
  return {};
}

// Ranks that come at all come within this; on this host, where nothing is queued, within that.
constexpr double kLeastStart = 10;
constexpr double kLocalStart = 120;

// A launcher that stays queued must not use more time than there is.
double StartLimit(const TuningRequest& request, double passed) {
  const double left = std::max(request.budget - passed, kLeastStart);
  const bool here = request.launcher.kind == launch::Launcher::Kind::kLocal;
  return here ? std::min(left, kLocalStart) : left;
}

Status LateStart(const Status& status, const TuningRequest& request, double limit) {
  if (status.code() != ErrorCode::kTimeout) return status;
  std::string why = Format("; given up after {:.0f} s of --budget {:g}s", limit, request.budget);
  if (request.launcher.kind == launch::Launcher::Kind::kSrun) {
    why +=
        ": the job may still be queued; run tune inside an allocation (salloc), or with a "
        "larger --budget";
  }
  return Status::Error(status.code(), status.message() + why);
}

TuneFiles OnlySamples(const TuneFiles& files) {
  TuneFiles only;
  only.folder = files.folder;
  only.store = files.store;
  return only;
}

// How often a recorded job makes a call: what its time counts.
double WeightOf(const Mix& mix, const measure::Trial& trial) {
  for (const MixEntry& entry : mix.entries) {
    if (entry.operation == trial.operation && entry.bytes == trial.bytes) {
      return static_cast<double>(entry.calls);
    }
  }
  return 1;
}

SessionOptions OptionsOf(const TuningRequest& request, bool relaunch) {
  SessionOptions session;
  session.seconds = request.budget;
  session.samples = request.samples;
  session.seed = request.ranks.seed;
  session.relaunch = relaunch;
  // A recorded job calls the sizes that it has called.
  session.between = request.workload.empty();
  session.command_line = request.command_line;
  session.origin = request.iterate            ? "diapason tune, iterations"
                   : request.workload.empty() ? "diapason tune, collectives"
                                              : policy::kFromRecordedCalls;
  return session;
}

Result<std::unique_ptr<OwnerLock>> LockFolder(const std::string& folder) {
  Result<std::unique_ptr<OwnerLock>> lock =
      OwnerLock::Take(folder + "/tune.lock", "the folder '" + folder + "'");
  if (lock.ok() || lock.status().code() != ErrorCode::kUnavailable) return lock;
  return Unavailable(lock.status().message() +
                     ": wait for it to end, or choose another folder with --output");
}

// Everything that the leading process does, whatever the ranks are.
Result<TuningResult> Lead(const TuningRequest& request, const TuneGround& ground,
                          const MeasurerSource& source, bool relaunch, const TuningEvents& events) {
  TuningResult result;
  result.relaunched = relaunch;
  ASSIGN_OR_RETURN(TuneFiles prepared, PrepareFolder(request.output));
  TuneFiles& files = prepared;
  // Before anything in it changes: two tunings would take each other's files for their own.
  ASSIGN_OR_RETURN(const std::unique_ptr<OwnerLock> lock, LockFolder(files.folder));
  ASSIGN_OR_RETURN(std::unique_ptr<dataset::SampleStore> store,
                   dataset::SampleStore::Open(files.store, dataset::SampleStore::Access::kWrite));

  TuneInputs inputs;
  inputs.store = store.get();
  inputs.source = source;
  inputs.call_cases = [&](const Subject& subject) -> Result<std::vector<search::CallCase>> {
    RETURN_IF_ERROR(measure::CheckNoPolicyIsSet(Settings::Read(ProcessEnvironment()), subject));
    ASSIGN_OR_RETURN(result.goal, FindGoal(request, subject));
    for (const std::string& note : result.goal.notes) Warn(events, note);
    if (events.started) events.started(ground, subject, result.goal);
    return result.goal.call_cases;
  };
  SessionOptions session = OptionsOf(request, relaunch);
  if (!request.workload.empty()) {
    session.weight = [&result](const measure::Trial& trial) {
      return WeightOf(result.goal.mix, trial);
    };
  }
  const ProgressCallback progress =
      events.progress ? events.progress : [](Stage, double, const std::string&) { return true; };
  ASSIGN_OR_RETURN(result.outcome, Tune(inputs, session, progress));
  for (const std::string& note : result.outcome.notes) Warn(events, note);
  if (!result.Decided()) {
    result.older_policy = FileExists(files.policy);
    result.files = OnlySamples(files);
    return result;
  }
  RETURN_IF_ERROR(WriteFiles(result.outcome, result.goal, events, &files));
  result.files = files;
  return result;
}

}  // namespace

Result<TuningResult> RunTuning(TuningRequest request, const TuningEvents& events) {
  ASSIGN_OR_RETURN(const TuneGround ground, FindGround(&request));
  if (events.found) events.found(ground);
  search::MeasurerRequest measurer;
  measurer.ranks = request.ranks;
  measurer.launcher = request.launcher;
  const double begin = SteadySeconds();
  const auto source = [&]() -> Result<std::shared_ptr<Measurer>> {
    measurer.start_limit = StartLimit(request, SteadySeconds() - begin);
    Result<std::unique_ptr<Measurer>> made = search::MakeMeasurer(measurer, request.nodes);
    if (!made.ok()) return LateStart(made.status(), request, measurer.start_limit);
    return std::shared_ptr<Measurer>(std::move(made).value());
  };
  return Lead(request, ground, source, true, events);
}

Result<TuningResult> RunTuningOn(Group* group, const TuningRequest& request,
                                 const TuneGround& ground, const TuningEvents& events) {
  if (events.found) events.found(ground);
  ASSIGN_OR_RETURN(std::unique_ptr<measure::GroupMeasurer> leading,
                   measure::GroupMeasurer::Lead(group, measure::ClusterOf(request.ranks)));
  const std::shared_ptr<Measurer> measurer = std::move(leading);
  return Lead(
      request, ground, [&] { return Result<std::shared_ptr<Measurer>>(measurer); }, false, events);
}

}  // namespace diapason::tune
