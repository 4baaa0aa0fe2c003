#include "cli/commands/env/env_tune.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/commands/env/knobs_options.h"
#include "cli/framework/command_line.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "env_tune/report.h"

namespace diapason::cli {
namespace {

std::atomic<bool> stop_asked{false};
void AskToStop(int /*signal*/) { stop_asked.store(true); }

int RunTune(const EnvTuneOptions& options) {
  const Result<env_tune::TuneRequest> request = EnvTuneRequest(options);
  if (!request.ok()) return Fail(request.status());
  const Status writable = env_tune::CheckOutputs(request.value(), options.output);
  if (!writable.ok()) return Fail(writable);
  const host::Machine machine = host::LookAtMachine(RootFs(), ProcessEnvironment());
  struct sigaction action {};
  action.sa_handler = AskToStop;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  const Result<env_tune::TuneResult> done = env_tune::RunTuning(
      request.value(), machine,
      [&options](const std::string& line) {
        if (!options.quiet) Progress(line);
      },
      &stop_asked);
  if (!done.ok()) return Fail(done.status());
  const env_tune::TuneResult& result = done.value();
  const std::string report = env_tune::TuneReport(request.value(), result, machine);
  if (!options.output.empty()) {
    const Status written = WriteFileAtomically(options.output, report);
    if (!written.ok()) Warn(written.message());
  }
  if (options.json) {
    PrintEnvTuneJson(request.value(), result, machine);
  } else {
    std::printf("%s", report.c_str());
  }
  switch (result.end) {
    case env_tune::TuneEnd::kBroken:
      return Fail(Unavailable((result.no_figure ? "the command succeeds, but gives no figure: "
                                                : "the command fails by itself: ") +
                              result.broken));
    case env_tune::TuneEnd::kInterrupted:
      return kExitInterrupted;
    case env_tune::TuneEnd::kDone:
    case env_tune::TuneEnd::kBudget:
      break;
  }
  return kExitFine;
}

void AddMeasureOptions(CommandLine* command, EnvTuneOptions* options) {
  command->Heading("What is judged");
  command
      ->AddOption("--metric", options->metric,
                  "A pattern with one group: the number in the output that is judged")
      ->TypeName("PATTERN")
      ->Default("the command's time");
  command->AddOption("--metric-pick", options->pick, "Which match counts: first, last or median")
      ->TypeName("WORD")
      ->Words({"first", "last", "median"})
      ->Check(ReadBy(env_tune::ParseMetricPick))
      ->ShowDefault();
  command->AddFlag("--higher", options->higher, "More of the metric is better");
  command
      ->AddOption("--bench", options->bench,
                  "Run `diapason bench ARGS`, judge the geometric mean of its times")
      ->TypeName("ARGS");
  command
      ->AddOption("--iteration", options->iteration,
                  "Run `diapason bench iteration ARGS`, judge the median step")
      ->TypeName("ARGS");
  command->AddOption("--margin", options->margin, "The least gain that is worth a setting")
      ->TypeName("SHARE")
      ->Check(ShareOf("gain"))
      ->ShowDefault();
  command
      ->AddOption("--alpha", options->alpha,
                  "The chance of ever keeping what changes nothing, over everything tried")
      ->TypeName("SHARE")
      ->Check(ShareOf("chance"))
      ->ShowDefault();
  command
      ->AddOption("--max-cpu", options->max_cpu,
                  "The most CPU time a setting may cost: +10%, or 30s")
      ->TypeName("LIMIT");
  command
      ->AddOption("--max-memory", options->max_memory,
                  "The most memory its largest process may take: +5%, or 4GiB")
      ->TypeName("LIMIT");
}

void AddRunOptions(CommandLine* command, EnvTuneOptions* options) {
  command->Heading("How it is run");
  command->AddTime("--budget", options->budget, "The time all of it may take", 0.001, 1e8);
  command->AddTime("--timeout", options->timeout, "The time one run may take", 0.001, 1e8)
      ->Default("ten times the first one's");
  command
      ->AddOption("--baseline-runs", options->baseline_runs, "Runs of the default at the beginning")
      ->Check(Range(2, 1000))
      ->ShowDefault();
  command->AddOption("--blocks", options->blocks, "The most blocks of one comparison")
      ->Check(Range(4, env_tune::SignFlipTest::kMostBlocks))
      ->ShowDefault();
  command->AddOption("--validation", options->validation, "Blocks of the validation")
      ->Check(Range(5, env_tune::SignFlipTest::kMostBlocks))
      ->ShowDefault();
  command->AddFlag("--abba", options->abba, "Blocks of four, ABBA or BAAB, instead of pairs");
  command->AddOption("--seed", options->seed, "Of everything random: the order of the runs")
      ->ShowDefault();
  command->AddOption("--state", options->state, "Record every run in this file as it ends")
      ->TypeName("FILE");
  command->AddFlag("--resume", options->resume, "Go on with the tuning in --state");
}

void AddOptions(CommandLine* command, EnvTuneOptions* options) {
  command->Heading("What to try");
  command->AddOption("--knob", options->knobs, "A variable and what to try")
      ->TypeName("NAME=VALUE,...")
      ->OneEach();
  command->AddOption("--knobs", options->knob_file, "A TOML file of [[knob]] name, values")
      ->TypeName("FILE");
  command->AddOption("--library", options->library, "nccl or rccl, for the built-in list")
      ->TypeName("NAME")
      ->Words(NcclOrRccl());
  command->AddOption("--library-version", options->version, "Its version, such as 2.28.9")
      ->TypeName("VERSION");
  command
      ->AddOption("--binds", options->binds,
                  "What binds, where you know: latency, bandwidth or cpu")
      ->TypeName("WORD")
      ->Words({"latency", "bandwidth", "cpu"})
      ->Check(ReadBy(env_tune::ParseBinds));
  AddMeasureOptions(command, options);
  AddRunOptions(command, options);
  command->Heading("Output");
  command->AddOutput(options->output, "Write the report to this file as well");
  command->AddJson(options->json, "Print JSON instead of the report");
  command->AddQuiet(options->quiet);
  command->AddFlag("-v,--verbose", options->verbose, "Show every run, and what the command prints");
}

// What does not go together, whatever the machine.
void CheckUsage(const EnvTuneOptions& options) {
  const bool own = !options.bench.empty() || !options.iteration.empty();
  if (!options.bench.empty() && !options.iteration.empty()) {
    throw UsageError{"", "--bench and --iteration exclude each other"};
  }
  if (own && (!options.command.empty() || !options.metric.empty())) {
    throw UsageError{"",
                     "--bench and --iteration are commands of their own: without -- COMMAND and "
                     "without --metric"};
  }
  if (!own && options.command.empty()) {
    throw UsageError{"", "no command; diapason env tune -- COMMAND ARGUMENTS..."};
  }
  const Status right = CheckLibraryOptions(options.library, options.version);
  if (!right.ok()) throw UsageError{"", right.message()};
  if (options.higher && options.metric.empty()) {
    throw UsageError{"--higher", "it goes with --metric: less time is always better"};
  }
  if (options.resume && options.state.empty()) {
    throw UsageError{"--resume", "it needs --state FILE"};
  }
}

}  // namespace

void AddEnvTune(CommandLine* env, CommandAction* run) {
  auto options = std::make_shared<EnvTuneOptions>();
  CommandLine* command = env->AddCommand(
      "tune", "Find out which settings make your own command faster, or that none does");
  AddOptions(command, options.get());
  command->TakeCommand();
  command->Describe(
      "Runs the command again and again, with and without each setting in turns, and keeps what is "
      "faster beyond doubt. docs/commands/env.md has the method.");
  command->Example("diapason env tune --budget 20m -- ./train.sh", "By the time it takes");
  command->Example("diapason env tune --metric 'loss after ([0-9.]+) s' -- ./train.sh",
                   "By a number it prints");
  command->Example("diapason env tune --bench 'allreduce -g 4 --sizes 1M'",
                   "By our own measurement");
  command->ExitStatus(kExitFailed, "the command fails by itself, or the input is wrong");
  command->ExitStatus(kExitInterrupted, "ended by Ctrl-C; with --state, `--resume` goes on");
  command->Callback([options, run, command] {
    options->command = command->CommandAfterDashes("diapason env tune --");
    CheckUsage(*options);
    *run = [options] { return RunTune(*options); };
  });
}

}  // namespace diapason::cli
