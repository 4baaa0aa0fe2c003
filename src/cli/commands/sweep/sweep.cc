#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/ranks.h"
#include "cli/commands/sweep/sweep_options.h"
#include "cli/commands/sweep/sweep_progress.h"
#include "cli/commands/sweep/sweep_report.h"
#include "cli/commands/sweep/sweep_run.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/interrupt.h"
#include "dataset/recorder.h"
#include "dataset/store.h"
#include "measure/marked_measurer.h"

namespace diapason::cli {
namespace {

using measure::Measurement;
using measure::Measurer;
using measure::Subject;
using search::CallCase;

// Target length of a block: long compared with the clock resolution and the start barrier, short
// compared with drift.
constexpr double kBlockSeconds = 0.003;
// Estimated time to start ranks, used for plans.
constexpr double kLaunchSeconds = 2;

int64_t SamplesFor(const SweepOptions& options, const std::vector<CallCase>& call_cases) {
  if (options.sample_share <= 0) return options.search.samples;
  size_t candidates = 0;
  for (const CallCase& call_case : call_cases) candidates += call_case.candidates.size();
  return std::max<int64_t>(1, std::llround(options.sample_share * static_cast<double>(candidates) *
                                           options.search.least_samples));
}

// Stores what came along with the readings that were asked for.
class Byproducts {
 public:
  Status Keep(Measurer* measurer, dataset::Recorder* recorder) {
    for (const auto& [trial, measurement] : measurer->TakeByproducts()) {
      dataset::Sample sample = measure::SampleOf(trial, measurer->subject(), measurement);
      sample.round = rounds_[sample.point]++;
      RETURN_IF_ERROR(recorder->Add(std::move(sample)));
    }
    return {};
  }

 private:
  std::map<dataset::Point, int> rounds_;
};

Result<SweepPart> RunPart(const SweepOptions& options, Measurer* measurer,
                          dataset::SampleStore* store) {
  SweepPart part;
  part.subject = measurer->subject();
  ASSIGN_OR_RETURN(part.call_cases,
                   search::CallCasesFor(options.Request(), options.plan, *measurer));
  part.known.resize(part.call_cases.size());
  for (size_t i = 0; i < part.call_cases.size(); ++i) {
    part.known[i].resize(part.call_cases[i].candidates.size());
  }
  SweepRun run;
  if (store != nullptr) {
    ASSIGN_OR_RETURN(run,
                     BeginOrResume(options, part.subject, store, part.call_cases, &part.known));
  }
  search::SearchOptions search = options.search;
  search.samples = SamplesFor(options, part.call_cases);
  // Changing the environment costs a launch, so more is measured per launch.
  std::set<std::string> environments;
  for (const CallCase& call_case : part.call_cases) {
    for (const search::Candidate& candidate : call_case.candidates) {
      environments.insert(candidate.environment);
    }
  }
  if (environments.size() > 1 && !options.launch_each) search.visit = search.least_samples;
  int64_t expected = search.samples;
  if (expected == 0 && search.seconds <= 0) {
    for (const CallCase& call_case : part.call_cases) {
      expected += static_cast<int64_t>(call_case.candidates.size()) *
                  (options.adaptive ? search.least_samples : search.most_samples);
    }
  }
  dataset::Recorder recorder(store, run.id);
  SweepProgress progress(&part.call_cases, &part.subject, expected, search.seconds, options.quiet);
  Status trouble;
  Byproducts byproducts;
  const search::MeasurementObserver observer = [&](size_t call_case, size_t candidate,
                                                   const Measurement& measurement) {
    measure::Trial trial = part.call_cases[call_case].trial;
    trial.config = part.call_cases[call_case].candidates[candidate].config;
    trial.environment = part.call_cases[call_case].candidates[candidate].environment;
    dataset::Sample sample = measure::SampleOf(trial, part.subject, measurement);
    sample.round = static_cast<int>(part.known[call_case][candidate].seconds.size());
    trouble = recorder.Add(std::move(sample));
    if (trouble.ok()) trouble = byproducts.Keep(measurer, &recorder);
    // Only results that are in the store are shown.
    if (progress.Took(call_case, candidate, measurement)) {
      if (trouble.ok()) trouble = recorder.Flush();
      progress.Show(call_case, candidate);
    }
    return trouble.ok() && !Interrupted();
  };
  search::CalibratedMeasurer::Options calibration;
  calibration.block_seconds = kBlockSeconds;
  search::CalibratedMeasurer calibrated(measurer, calibration);
  measure::MarkedMeasurer marked(options.Calibrates() ? &calibrated : measurer, &recorder);
  Measurer* const measured = &marked;
  const auto begin = std::chrono::steady_clock::now();
  const Status searched =
      options.adaptive
          ? search::SearchAdaptively(measured, part.call_cases, search, observer, &part.known)
          : search::SearchExhaustively(measured, part.call_cases, search, observer, &part.known);
  part.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  part.samples = progress.taken();
  part.finished = !Interrupted() && searched.ok() && trouble.ok();
  const Status flushed = recorder.Flush();
  if (store != nullptr) {
    const Status ended =
        store->EndRun(run.id, part.finished ? dataset::SampleRun::State::kDone
                                            : dataset::SampleRun::State::kInterrupted);
    if (flushed.ok() && !ended.ok()) return ended;
  }
  for (const Status& status : {trouble, flushed, searched}) {
    if (!status.ok()) return status;
  }
  return part;
}

Result<int> DryRun(const SweepOptions& options) {
  std::vector<SweepPlan> plans;
  for (const int nodes : options.nodes) {
    SweepPlan plan;
    ASSIGN_OR_RETURN(plan.subject, search::ExpectedSubject(options.Request(), nodes));
    ASSIGN_OR_RETURN(plan.call_cases, search::MakeCallCases(options.plan, plan.subject));
    const int repeats =
        options.adaptive ? options.search.least_samples : options.search.most_samples;
    plan.estimate = EstimateSweep(plan.call_cases, plan.subject, repeats, kBlockSeconds,
                                  kLaunchSeconds, options.launch_each);
    if (options.search.seconds > 0) {
      plan.estimate.seconds = std::min(plan.estimate.seconds, options.search.seconds);
    }
    plans.push_back(std::move(plan));
  }
  WriteOut((options.json ? PlanJson(plans) : PlanText(plans)));
  return kExitFine;
}

Result<int> Sweep(const SweepOptions& options) {
  ASSIGN_OR_RETURN(const host::JobLibrary job, UseJobLibrary(options.ranks));
  SayJobLibrary(job);
  if (options.dry_run) return DryRun(options);
  if (IsLaunched()) {
    return Invalid(
        "sweep starts the ranks itself, so that it survives their crashes: run it once, "
        "without a launcher, and use --launcher mpirun or --launcher srun");
  }
  std::unique_ptr<dataset::SampleStore> store;
  if (!options.store.empty()) {
    ASSIGN_OR_RETURN(
        store, dataset::SampleStore::Open(options.store, dataset::SampleStore::Access::kWrite));
  }
  CatchInterrupts();
  std::vector<SweepPart> parts;
  for (const int nodes : options.nodes) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Measurer> measurer,
                     search::MakeMeasurer(options.Request(), nodes));
    ASSIGN_OR_RETURN(SweepPart part, RunPart(options, measurer.get(), store.get()));
    part.launches = measurer->launches();
    if (!options.json) WriteOut(SweepTable(part));
    std::fflush(stdout);
    const bool finished = part.finished;
    parts.push_back(std::move(part));
    if (!finished) break;
  }
  if (options.json) WriteOut(SweepJson(parts));
  if (store != nullptr && !options.json) {
    PrintOut("every sample is in {}; `diapason data show {}` shows them\n", options.store,
             options.store);
  }
  return Interrupted() ? kExitInterrupted : kExitFine;
}

}  // namespace

void AddSweep(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<SweepOptions>();
  CommandLine* command = parent->AddCommand(
      "sweep", "Measure every configuration of every collective and size, and store every sample");
  AddSweepOptions(command, options.get());
  command->Callback([options, run] {
    const Status read = options->Read();
    if (!read.ok()) throw UsageError{"", read.message()};
    *run = [options] { return Sweep(*options); };
  });
}

}  // namespace diapason::cli
