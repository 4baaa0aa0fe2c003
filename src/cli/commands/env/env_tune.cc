#include "cli/commands/env/env_tune.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/commands/env/knobs_options.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "env_tune/report.h"

namespace diapason::cli {
namespace {

std::atomic<bool> stop_asked{false};
void AskToStop(int /*signal*/) { stop_asked.store(true); }

Result<int> RunTune(const EnvTuneOptions& options) {
  ASSIGN_OR_RETURN(const env_tune::TuneRequest request, EnvTuneRequest(options));
  RETURN_IF_ERROR(env_tune::CheckOutputs(request, options.output));
  const host::Machine machine = host::LookAtMachine(RootFs(), ProcessEnvironment());
  struct sigaction action {};
  action.sa_handler = AskToStop;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  const Result<env_tune::TuneResult> done = env_tune::RunTuning(
      request, machine,
      [&options](const std::string& line) {
        if (!options.quiet) Progress(line);
      },
      &stop_asked);
  if (!done.ok()) return done.status();
  const env_tune::TuneResult& result = done.value();
  const std::string report = env_tune::TuneReport(request, result, machine);
  if (!options.output.empty()) {
    const Status written = WriteFileAtomically(options.output, report);
    if (!written.ok()) Warn(written.message());
  }
  if (options.json) {
    PrintEnvTuneJson(request, result, machine);
  } else {
    PrintOut("{}", report);
  }
  switch (result.end) {
    case env_tune::TuneEnd::kBroken:
      return Unavailable((result.no_figure ? "the command succeeds, but its output has no figure: "
                                           : "the command fails by itself: ") +
                         result.broken);
    case env_tune::TuneEnd::kInterrupted:
      return kExitInterrupted;
    case env_tune::TuneEnd::kDone:
    case env_tune::TuneEnd::kBudget:
      break;
  }
  return kExitFine;
}

void AddMeasureOptions(CommandLine* command, EnvTuneOptions* options) {
  command->Heading("Metric");
  command
      ->AddOption("--metric", options->metric,
                  "Regular expression with one group that extracts the metric from the output of "
                  "the command")
      ->TypeName("PATTERN")
      ->Default("the run time of the command");
  command->AddOption("--metric-pick", options->pick, "Which match to use: first, last or median")
      ->TypeName("WORD")
      ->Words({"first", "last", "median"})
      ->Check(ReadBy(env_tune::ParseMetricPick))
      ->ShowDefault();
  command->AddFlag("--higher", options->higher, "A higher metric is better");
  command
      ->AddOption("--bench", options->bench,
                  "Run `diapason bench ARGS`; the metric is the geometric mean of its times")
      ->TypeName("ARGS");
  command
      ->AddOption("--iteration", options->iteration,
                  "Run `diapason bench iteration ARGS`; the metric is the median step time")
      ->TypeName("ARGS");
  command->AddOption("--margin", options->margin, "Least gain for which a setting is kept")
      ->TypeName("SHARE")
      ->Check(ShareOf("gain"))
      ->ShowDefault();
  command
      ->AddOption("--alpha", options->alpha,
                  "Probability of keeping a setting that changes nothing, over all comparisons")
      ->TypeName("SHARE")
      ->Check(ShareOf("chance"))
      ->ShowDefault();
  command
      ->AddOption("--max-cpu", options->max_cpu,
                  "Maximum CPU time that a setting may cost: +10%, or 30s")
      ->TypeName("LIMIT");
  command
      ->AddOption("--max-memory", options->max_memory,
                  "Maximum memory of the largest process with a setting: +5%, or 4GiB")
      ->TypeName("LIMIT");
}

void AddRunOptions(CommandLine* command, EnvTuneOptions* options) {
  command->Heading("Runs");
  command->AddTime("--budget", options->budget, "Time limit for all runs together", 0.001, 1e8);
  command->AddTime("--timeout", options->timeout, "Time limit for one run", 0.001, 1e8)
      ->Default("ten times that of the first run");
  command
      ->AddOption("--baseline-runs", options->baseline_runs,
                  "Number of runs with the default at the beginning")
      ->Check(Range(2, 1000))
      ->ShowDefault();
  command->AddOption("--blocks", options->blocks, "Maximum number of blocks in one comparison")
      ->Check(Range(4, SignFlipTest::kMostBlocks))
      ->ShowDefault();
  command->AddOption("--validation", options->validation, "Number of blocks in the validation")
      ->Check(Range(5, SignFlipTest::kMostBlocks))
      ->ShowDefault();
  command->AddFlag("--abba", options->abba,
                   "Use blocks of four runs, ABBA or BAAB, instead of pairs");
  command
      ->AddOption("--seed", options->seed,
                  "Seed for the random number generator, which sets the order of the runs")
      ->ShowDefault();
  command->AddOption("--state", options->state, "File to record every run in as it ends")
      ->TypeName("FILE");
  command->AddFlag("--resume", options->resume, "Continue the tuning recorded in --state");
}

void AddOptions(CommandLine* command, EnvTuneOptions* options) {
  command->Heading("Variables to try");
  command->AddOption("--knob", options->knobs, "Variable and the values to try")
      ->TypeName("NAME=VALUE,...")
      ->OneEach();
  command
      ->AddOption("--knobs", options->knob_file,
                  "TOML file with [[knob]] entries of name and values")
      ->TypeName("FILE");
  command
      ->AddOption("--library", options->library,
                  "Library whose built-in list of variables to try: nccl or rccl")
      ->TypeName("NAME")
      ->Words(NcclOrRccl());
  command
      ->AddOption("--library-version", options->version, "Version of the library, such as 2.28.9")
      ->TypeName("VERSION");
  command
      ->AddOption("--binds", options->binds,
                  "Known bottleneck of the command: latency, bandwidth or cpu")
      ->TypeName("WORD")
      ->Words({"latency", "bandwidth", "cpu"})
      ->Check(ReadBy(env_tune::ParseBinds));
  AddMeasureOptions(command, options);
  AddRunOptions(command, options);
  command->Heading("Output");
  command->AddOutput(options->output, "File to write the report to, in addition to the output");
  command->AddJson(options->json, "Print JSON instead of the report");
  command->AddQuiet(options->quiet);
  command->AddFlag("-v,--verbose", options->verbose,
                   "Print every run, and the output of the command");
}

// Checks for options that exclude each other on any machine.
void CheckUsage(const EnvTuneOptions& options) {
  const bool own = !options.bench.empty() || !options.iteration.empty();
  if (!options.bench.empty() && !options.iteration.empty()) {
    throw UsageError{"", "--bench and --iteration exclude each other"};
  }
  if (own && (!options.command.empty() || !options.metric.empty())) {
    throw UsageError{"",
                     "--bench and --iteration run commands of their own: use them without -- "
                     "COMMAND and without --metric"};
  }
  if (!own && options.command.empty()) {
    throw UsageError{"", "no command given; usage: diapason env tune -- COMMAND ARGUMENTS..."};
  }
  const Status right = CheckLibraryOptions(options.library, options.version);
  if (!right.ok()) throw UsageError{"", right.message()};
  if (options.higher && options.metric.empty()) {
    throw UsageError{"--higher", "needs --metric: for times, less is always better"};
  }
  if (options.resume && options.state.empty()) {
    throw UsageError{"--resume", "needs --state FILE"};
  }
}

}  // namespace

void AddEnvTune(CommandLine* env, CommandAction* run) {
  auto options = std::make_shared<EnvTuneOptions>();
  CommandLine* command = env->AddCommand(
      "tune", "Find the environment variables that make a command faster, or show that none does");
  AddOptions(command, options.get());
  command->TakeCommand();
  command->Describe(
      "Runs the command repeatedly, alternating with and without each setting, and keeps the "
      "settings that are significantly faster. docs/commands/env.md describes the method.");
  command->Example("diapason env tune --budget 20m -- ./train.sh",
                   "Tune the run time of a command");
  command->Example("diapason env tune --metric 'loss after ([0-9.]+) s' -- ./train.sh",
                   "Tune a number that the command prints");
  command->Example("diapason env tune --bench 'allreduce -g 4 --sizes 1M'",
                   "Tune a measurement of diapason");
  command->ExitStatus(kExitFailed, "the command fails by itself, or the input is invalid");
  command->ExitStatus(kExitInterrupted,
                      "interrupted by Ctrl-C; with --state, `--resume` continues");
  command->Callback([options, run, command] {
    options->command = command->CommandAfterDashes("diapason env tune --");
    CheckUsage(*options);
    *run = [options] { return RunTune(*options); };
  });
}

}  // namespace diapason::cli
