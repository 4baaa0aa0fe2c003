#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/ranks.h"
#include "cli/sweep_options.h"
#include "cli/sweep_progress.h"
#include "cli/sweep_report.h"
#include "dataset/recorder.h"
#include "dataset/store.h"

namespace diapason::cli {
namespace {

using measure::Contest;
using measure::Instrument;
using measure::Knowledge;
using measure::Reading;
using measure::Subject;

// Blocks are about this long: long against the clock and the start line, short against drift.
constexpr double kBlockSeconds = 0.003;
// What starting ranks is reckoned with, in plans.
constexpr double kLaunchSeconds = 2;

// The run to go on with, or a new one.
Result<std::string> BeginOrResume(const SweepOptions& options, const Subject& subject,
                                  dataset::Store* store, const std::vector<Contest>& contests,
                                  Knowledge* known) {
  const std::string plan =
      options.plan.Text() + Format("; backend=%s; nodes=%d; ranks=%d", subject.backend.c_str(),
                                   subject.nodes, subject.ranks);
  if (options.resume) {
    const Result<std::vector<dataset::Run>> runs = store->Runs();
    if (!runs.ok()) return runs.status();
    for (auto run = runs.value().rbegin(); run != runs.value().rend(); ++run) {
      if (run->source != "sweep" || run->plan != plan) continue;
      if (run->state == dataset::Run::State::kDone) {
        return Invalid("the sweep of this plan is complete; leave --resume away to measure anew");
      }
      dataset::Filter filter;
      filter.run = run->id;
      const Result<dataset::Contents> contents = store->Read(filter);
      if (!contents.ok()) return contents.status();
      *known = measure::KnownFrom(contents.value(), contests, subject);
      return run->id;
    }
    Warn("there is no sweep of this plan in '" + options.store + "' to resume; beginning anew");
  }
  dataset::Run run;
  run.id = dataset::NewRunId();
  run.source = "sweep";
  run.origin = options.command_line;
  run.started = static_cast<double>(std::time(nullptr));
  run.plan = plan;
  run.machine = subject.machine;
  const Result<bool> begun = store->BeginRun(run);
  if (!begun.ok()) return begun.status();
  return run.id;
}

int64_t SamplesFor(const SweepOptions& options, const std::vector<Contest>& contests) {
  if (options.sample_share <= 0) return options.search.samples;
  size_t contenders = 0;
  for (const Contest& contest : contests) contenders += contest.contenders.size();
  return std::max<int64_t>(1, std::llround(options.sample_share * static_cast<double>(contenders) *
                                           options.search.least_samples));
}

Result<SweepPart> RunPart(const SweepOptions& options, Instrument* instrument,
                          dataset::Store* store) {
  SweepPart part;
  part.subject = instrument->subject();
  Result<std::vector<Contest>> contests = ContestsFor(options, *instrument);
  if (!contests.ok()) return contests.status();
  part.contests = std::move(contests).value();
  part.known.resize(part.contests.size());
  for (size_t i = 0; i < part.contests.size(); ++i) {
    part.known[i].resize(part.contests[i].contenders.size());
  }
  std::string run;
  if (store != nullptr) {
    Result<std::string> begun =
        BeginOrResume(options, part.subject, store, part.contests, &part.known);
    if (!begun.ok()) return begun.status();
    run = std::move(begun).value();
  }
  measure::SearchOptions search = options.search;
  search.samples = SamplesFor(options, part.contests);
  // Going from one environment to another costs a launch: more is measured each time.
  std::set<std::string> environments;
  for (const Contest& contest : part.contests) {
    for (const measure::Contender& contender : contest.contenders) {
      environments.insert(contender.environment);
    }
  }
  if (environments.size() > 1 && !options.launch_each) search.visit = search.least_samples;
  int64_t expected = search.samples;
  if (expected == 0 && search.seconds <= 0) {
    for (const Contest& contest : part.contests) {
      expected += static_cast<int64_t>(contest.contenders.size()) *
                  (options.adaptive ? search.least_samples : search.most_samples);
    }
  }
  dataset::Recorder recorder(store, run);
  SweepProgress progress(&part.contests, &part.subject, expected, search.seconds, options.quiet);
  Status trouble;
  const measure::Observer observer = [&](size_t contest, size_t contender, const Reading& reading) {
    measure::Trial trial = part.contests[contest].trial;
    trial.config = part.contests[contest].contenders[contender].config;
    trial.environment = part.contests[contest].contenders[contender].environment;
    dataset::Sample sample = measure::SampleOf(trial, part.subject, reading);
    sample.round = static_cast<int>(part.known[contest][contender].seconds.size());
    const Status added = recorder.Add(std::move(sample));
    if (!added.ok()) trouble = added;
    progress.Took(contest, contender, reading);
    return trouble.ok() && !Interrupted();
  };
  measure::CalibratedInstrument::Options calibration;
  calibration.block_seconds = kBlockSeconds;
  measure::CalibratedInstrument calibrated(instrument, calibration);
  Instrument* const measured = options.Calibrates() ? &calibrated : instrument;
  const auto begin = std::chrono::steady_clock::now();
  const Status searched =
      options.adaptive
          ? measure::SearchAdaptively(measured, part.contests, search, observer, &part.known)
          : measure::SearchExhaustively(measured, part.contests, search, observer, &part.known);
  part.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  part.samples = progress.taken();
  part.finished = !Interrupted() && searched.ok() && trouble.ok();
  const Status flushed = recorder.Flush();
  if (store != nullptr) {
    const Status ended = store->EndRun(
        run, part.finished ? dataset::Run::State::kDone : dataset::Run::State::kInterrupted);
    if (flushed.ok() && !ended.ok()) return ended;
  }
  for (const Status& status : {trouble, flushed, searched}) {
    if (!status.ok()) return status;
  }
  return part;
}

int DryRun(const SweepOptions& options) {
  for (const int nodes : options.nodes) {
    const Result<Subject> subject = ExpectedSubject(options, nodes);
    if (!subject.ok()) return Fail(subject.status());
    const Result<std::vector<Contest>> contests =
        measure::MakeContests(options.plan, subject.value());
    if (!contests.ok()) return Fail(contests.status());
    const int repeats =
        options.adaptive ? options.search.least_samples : options.search.most_samples;
    SweepEstimate estimate = EstimateSweep(contests.value(), subject.value(), repeats,
                                           kBlockSeconds, kLaunchSeconds, options.launch_each);
    std::printf("%s on %s%s\n", Count(static_cast<size_t>(subject.value().ranks), "rank").c_str(),
                Count(static_cast<size_t>(nodes), "node").c_str(),
                subject.value().simulated ? ", simulated" : "");
    if (options.search.seconds > 0) {
      estimate.seconds = std::min(estimate.seconds, options.search.seconds);
    }
    std::printf("%s", PlanText(contests.value(), subject.value(), estimate).c_str());
  }
  std::printf("nothing was measured; times of calls are guessed\n");
  return kExitFine;
}

int Sweep(const SweepOptions& options) {
  if (options.dry_run) return DryRun(options);
  if (IsLaunched()) {
    return Fail(
        Invalid("sweep starts the ranks itself, so that it survives them: run it once, without a "
                "launcher, and say --launcher mpirun or --launcher srun"));
  }
  std::unique_ptr<dataset::Store> store;
  if (!options.store.empty()) {
    Result<std::unique_ptr<dataset::Store>> opened =
        dataset::Store::Open(options.store, dataset::Store::Access::kWrite);
    if (!opened.ok()) return Fail(opened.status());
    store = std::move(opened).value();
  }
  CatchInterrupts();
  std::vector<SweepPart> parts;
  for (const int nodes : options.nodes) {
    const Result<std::unique_ptr<Instrument>> instrument = MakeInstrument(options, nodes);
    if (!instrument.ok()) return Fail(instrument.status());
    Result<SweepPart> part = RunPart(options, instrument.value().get(), store.get());
    if (!part.ok()) return Fail(part.status());
    part.value().launches = instrument.value()->launches();
    if (!options.json) std::fputs(SweepTable(part.value()).c_str(), stdout);
    std::fflush(stdout);
    const bool finished = part.value().finished;
    parts.push_back(std::move(part).value());
    if (!finished) break;
  }
  if (options.json) std::fputs(SweepJson(parts).c_str(), stdout);
  if (store != nullptr && !options.json) {
    std::printf("every sample is in %s; `diapason data show %s` shows them\n",
                options.store.c_str(), options.store.c_str());
  }
  return Interrupted() ? kExitInterrupted : kExitFine;
}

}  // namespace

void AddSweep(CommandLine* parent, Run* run) {
  auto options = std::make_shared<SweepOptions>();
  CommandLine* command = parent->AddCommand(
      "sweep", "Measure every configuration of every collective and size, and keep every sample");
  AddSweepOptions(command, options.get());
  command->Callback([options, run] {
    const Status read = options->Read();
    if (!read.ok()) throw UsageError{"", read.message()};
    *run = [options] { return Sweep(*options); };
  });
}

}  // namespace diapason::cli
