#include "cli/env_tune.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>

#include "advise/tune/report.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/command_line.h"

namespace diapason::cli {
namespace {

constexpr int kExitInterrupted = 130;

std::atomic<bool> stop_asked{false};
void AskToStop(int /*signal*/) { stop_asked.store(true); }

int RunTune(const EnvTuneOptions& options) {
  const Result<advise::TuneRequest> request = EnvTuneRequest(options);
  if (!request.ok()) return Fail(request.status());
  const Status writable = advise::CheckOutputs(request.value(), options.report);
  if (!writable.ok()) return Fail(writable);
  const advise::Machine machine = advise::LookAtMachine(advise::Tree(), ProcessEnvironment());
  struct sigaction action {};
  action.sa_handler = AskToStop;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  const Result<advise::TuneResult> done = advise::RunTuning(
      request.value(), machine,
      [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }, &stop_asked);
  if (!done.ok()) return Fail(done.status());
  const advise::TuneResult& result = done.value();
  const std::string report = advise::TuneReport(request.value(), result, machine);
  if (!options.report.empty()) {
    const Status written = WriteFileAtomically(options.report, report);
    if (!written.ok()) Warn(written.message());
  }
  if (options.json) {
    PrintEnvTuneJson(request.value(), result, machine);
  } else {
    std::printf("%s", report.c_str());
  }
  switch (result.end) {
    case advise::TuneEnd::kBroken:
      return Fail(Unavailable((result.no_figure ? "the command succeeds, but gives no figure: "
                                                : "the command fails by itself: ") +
                              result.broken));
    case advise::TuneEnd::kInterrupted:
      return kExitInterrupted;
    case advise::TuneEnd::kDone:
    case advise::TuneEnd::kBudget:
      break;
  }
  return kExitFine;
}

void AddOptions(CommandLine* command, EnvTuneOptions* options) {
  command
      ->AddOption("--knob", options->knobs,
                  "NAME=VALUE,VALUE,...: a variable and what to try (repeatable)")
      ->OneEach();
  command->AddOption("--knobs", options->knob_file, "A TOML file of [[knob]] name, values");
  command->AddOption("--library", options->library, "nccl or rccl, for the built-in list");
  command->AddOption("--version", options->version, "Its version, such as 2.28.9");
  command->AddOption("--binds", options->binds,
                     "What binds, where you know: latency, bandwidth or cpu");
  command->AddOption("--metric", options->metric,
                     "A pattern with one group: the number in the output that is judged");
  command->AddOption("--metric-pick", options->pick, "Which match counts: first, last or median")
      ->ShowDefault();
  command->AddFlag("--higher", options->higher, "More of the metric is better");
  command->AddOption("--bench", options->bench,
                     "Run `diapason bench ARGS`, judge the geometric mean of its times");
  command->AddOption("--iteration", options->iteration,
                     "Run `diapason bench iteration ARGS`, judge the median step");
  command->AddOption("--min-gain", options->min_gain, "The least gain that is worth a setting")
      ->ShowDefault();
  command
      ->AddOption("--alpha", options->alpha,
                  "The chance of ever keeping what changes nothing, over everything tried")
      ->ShowDefault();
  command->AddOption("--max-cpu", options->max_cpu,
                     "The most CPU time a setting may cost: +10%, or 30s");
  command->AddOption("--max-memory", options->max_memory,
                     "The most memory its largest process may take: +5%, or 4GiB");
  command->AddOption("--budget", options->budget, "The time all of it may take")->ShowDefault();
  command->AddOption("--timeout", options->timeout,
                     "The time one run may take; else ten times the first one's");
  command->AddOption("--baseline", options->baseline, "Runs of the default at the beginning")
      ->Check(Range(2, 1000))
      ->ShowDefault();
  command->AddOption("--blocks", options->blocks, "The most blocks of one comparison")
      ->Check(Range(4, advise::SignFlipTest::kMostBlocks))
      ->ShowDefault();
  command->AddOption("--validation", options->validation, "Blocks of the validation")
      ->Check(Range(5, advise::SignFlipTest::kMostBlocks))
      ->ShowDefault();
  command->AddFlag("--abba", options->abba, "Blocks of four, ABBA or BAAB, instead of pairs");
  command->AddOption("--seed", options->seed, "Draws the order of the runs")->ShowDefault();
  command->AddOption("--state", options->state, "Record every run in this file as it ends");
  command->AddFlag("--resume", options->resume, "Go on with the tuning in --state");
  command->AddOption("--report", options->report, "Write the report to this file as well");
  command->AddFlag("--json", options->json, "Print JSON instead of the report");
  command->AddFlag("-v,--verbose", options->verbose, "Show every run, and what the command prints");
}

// What does not go together, whatever the machine.
void CheckUsage(const EnvTuneOptions& options) {
  const bool own = !options.bench.empty() || !options.iteration.empty();
  if (!options.bench.empty() && !options.iteration.empty()) {
    throw UsageError{"tune", "--bench and --iteration exclude each other"};
  }
  if (own && (!options.command.empty() || !options.metric.empty())) {
    throw UsageError{"tune",
                     "--bench and --iteration are commands of their own: without -- COMMAND and "
                     "without --metric"};
  }
  if (!own && options.command.empty()) {
    throw UsageError{"tune", "no command; diapason env tune [options] -- COMMAND ARGUMENTS..."};
  }
  if (options.higher && options.metric.empty()) {
    throw UsageError{"--higher", "it goes with --metric: less time is always better"};
  }
  if (options.resume && options.state.empty()) {
    throw UsageError{"--resume", "it needs --state FILE"};
  }
}

}  // namespace

void AddEnvTune(CommandLine* env, Run* run) {
  auto options = std::make_shared<EnvTuneOptions>();
  CommandLine* command = env->AddCommand(
      "tune", "Which settings make your own command faster: diapason env tune -- COMMAND");
  AddOptions(command, options.get());
  command->TakeCommand("After --: the command and its arguments");
  command->Callback([options, run, command] {
    options->command = command->CommandAfterDashes("diapason env tune --");
    CheckUsage(*options);
    *run = [options] { return RunTune(*options); };
  });
}

}  // namespace diapason::cli
