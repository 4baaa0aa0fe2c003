#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/interrupt.h"
#include "cli/framework/ranks.h"
#include "cli/commands/sweep/sweep_options.h"
#include "cli/commands/sweep/sweep_progress.h"
#include "cli/commands/sweep/sweep_report.h"
#include "cli/commands/sweep/sweep_run.h"
#include "dataset/recorder.h"
#include "dataset/store.h"
#include "measure/marked_measurer.h"

namespace diapason::cli {
namespace {

using search::Contest;
using measure::Instrument;
using measure::Reading;
using measure::Subject;

// Blocks are about this long: long against the clock and the start line, short against drift.
constexpr double kBlockSeconds = 0.003;
// What starting ranks is reckoned with, in plans.
constexpr double kLaunchSeconds = 2;

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
  SweepRun run;
  if (store != nullptr) {
    Result<SweepRun> begun =
        BeginOrResume(options, part.subject, store, part.contests, &part.known);
    if (!begun.ok()) return begun.status();
    run = std::move(begun).value();
  }
  search::SearchOptions search = options.search;
  search.samples = SamplesFor(options, part.contests);
  // Going from one environment to another costs a launch: more is measured each time.
  std::set<std::string> environments;
  for (const Contest& contest : part.contests) {
    for (const search::Contender& contender : contest.contenders) {
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
  dataset::Recorder recorder(store, run.id);
  SweepProgress progress(&part.contests, &part.subject, expected, search.seconds, options.quiet);
  Status trouble;
  const search::Observer observer = [&](size_t contest, size_t contender, const Reading& reading) {
    measure::Trial trial = part.contests[contest].trial;
    trial.config = part.contests[contest].contenders[contender].config;
    trial.environment = part.contests[contest].contenders[contender].environment;
    dataset::Sample sample = measure::SampleOf(trial, part.subject, reading);
    sample.round = static_cast<int>(part.known[contest][contender].seconds.size());
    trouble = recorder.Add(std::move(sample));
    // What is shown is in the store.
    if (progress.Took(contest, contender, reading)) {
      if (trouble.ok()) trouble = recorder.Flush();
      progress.Show(contest, contender);
    }
    return trouble.ok() && !Interrupted();
  };
  search::CalibratedInstrument::Options calibration;
  calibration.block_seconds = kBlockSeconds;
  search::CalibratedInstrument calibrated(instrument, calibration);
  measure::MarkedInstrument marked(options.Calibrates() ? &calibrated : instrument, &recorder);
  Instrument* const measured = &marked;
  const auto begin = std::chrono::steady_clock::now();
  const Status searched =
      options.adaptive
          ? search::SearchAdaptively(measured, part.contests, search, observer, &part.known)
          : search::SearchExhaustively(measured, part.contests, search, observer, &part.known);
  part.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  part.samples = progress.taken();
  part.finished = !Interrupted() && searched.ok() && trouble.ok();
  const Status flushed = recorder.Flush();
  if (store != nullptr) {
    const Status ended = store->EndRun(
        run.id, part.finished ? dataset::Run::State::kDone : dataset::Run::State::kInterrupted);
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
        search::MakeContests(options.plan, subject.value());
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
