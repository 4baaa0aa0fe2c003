#include "cli/commands/sweep/sweep_run.h"

#include <ctime>

#include "base/encoding.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/framework/command.h"
#include "measure/marked_measurer.h"
#include "search/sweep.h"

namespace diapason::cli {
namespace {

using dataset::SampleOutcome;
using measure::Subject;
using search::CallCase;
using search::SamplesByCandidate;

// Maximum number of skipped configurations that are listed one by one.
constexpr size_t kMostNamed = 8;

std::string PlanOf(const SweepOptions& options, const Subject& subject) {
  return MaskSecretsIn(options.plan.Text()) +
         Format("; backend={}; nodes={}; ranks={}", subject.backend, subject.nodes, subject.ranks);
}

Result<std::unique_ptr<OwnerLock>> LockRun(const dataset::SampleStore& store,
                                           const std::string& run) {
  return OwnerLock::Take(Format("{}.{:016x}.lock", store.path(), Fnv1a64(run)),
                         "the sweep of this plan in '" + store.path() + "'");
}

bool Failed(const search::CandidateSamples& evidence) {
  return evidence.outcome != SampleOutcome::kFine && evidence.outcome != SampleOutcome::kRefused;
}

// Retries the failed configurations. Returns their number.
size_t RetryFailed(SamplesByCandidate* known) {
  size_t failed = 0;
  for (std::vector<search::CandidateSamples>& call_case : *known) {
    for (search::CandidateSamples& evidence : call_case) {
      if (!Failed(evidence)) continue;
      ++failed;
      evidence.outcome = SampleOutcome::kFine;
    }
  }
  return failed;
}

void WarnOfSkipped(const std::vector<dataset::Sample>& blamed, const SamplesByCandidate& known) {
  for (size_t i = 0; i < blamed.size() && i < kMostNamed; ++i) {
    const dataset::Point& point = blamed[i].point;
    Warn(point.collective + " " + FormatBytes(point.bytes) + " " + point.ConfigText() +
         " is skipped: the sweep ended while it was measured");
  }
  size_t failed = 0;
  for (const std::vector<search::CandidateSamples>& call_case : known) {
    for (const search::CandidateSamples& evidence : call_case) failed += Failed(evidence) ? 1 : 0;
  }
  if (failed == 0) return;
  Warn(Count(failed, "configuration") + " that failed before " + (failed == 1 ? "is" : "are") +
       " skipped; --retry-failed tries " + (failed == 1 ? "it" : "them") + " again");
}

// The results of a run that is continued.
Result<SweepRun> Resume(const SweepOptions& options, const dataset::SampleRun& run,
                        const Subject& subject, dataset::SampleStore* store,
                        const std::vector<CallCase>& call_cases, SamplesByCandidate* known) {
  ASSIGN_OR_RETURN(std::unique_ptr<OwnerLock> lock, LockRun(*store, run.id));
  dataset::Filter filter;
  filter.run = run.id;
  ASSIGN_OR_RETURN(dataset::StoreContents contents, store->Read(filter));
  ASSIGN_OR_RETURN(const std::vector<dataset::Sample> blamed,
                   measure::SettleUnfinished(store, {run.id}, &contents));
  *known = search::KnownFrom(contents, call_cases, subject);
  const bool done = run.state == dataset::SampleRun::State::kDone;
  if (options.retry_failed) {
    if (RetryFailed(known) == 0 && done) {
      return Invalid("the sweep of this plan is complete, and nothing in it has failed");
    }
  } else if (done) {
    return Invalid("the sweep of this plan is complete; omit --resume to measure again");
  } else {
    WarnOfSkipped(blamed, *known);
  }
  RETURN_IF_ERROR(store->EndRun(run.id, dataset::SampleRun::State::kRunning));
  return SweepRun{run.id, std::move(lock)};
}

}  // namespace

Result<SweepRun> BeginOrResume(const SweepOptions& options, const Subject& subject,
                               dataset::SampleStore* store, const std::vector<CallCase>& call_cases,
                               SamplesByCandidate* known) {
  const std::string plan = PlanOf(options, subject);
  if (options.resume) {
    ASSIGN_OR_RETURN(const std::vector<dataset::SampleRun> runs, store->Runs());
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      if (run->source != "sweep" || run->plan != plan) continue;
      return Resume(options, *run, subject, store, call_cases, known);
    }
    Warn("there is no sweep of this plan in '" + options.store + "' to resume; starting a new one");
  }
  dataset::SampleRun run;
  run.id = dataset::NewRunId();
  run.source = "sweep";
  run.origin = options.command_line;
  run.started = static_cast<double>(std::time(nullptr));
  run.plan = plan;
  run.machine = subject.machine;
  // Before the run becomes visible.
  ASSIGN_OR_RETURN(std::unique_ptr<OwnerLock> lock, LockRun(*store, run.id));
  RETURN_IF_ERROR(store->BeginRun(run));
  return SweepRun{run.id, std::move(lock)};
}

}  // namespace diapason::cli
