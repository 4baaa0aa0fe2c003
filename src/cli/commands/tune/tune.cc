#include "cli/commands/tune/tune.h"

#include <cstdio>
#include <memory>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/ranks.h"
#include "cli/commands/tune/tune_job.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/interrupt.h"
#include "cli/framework/progress_line.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "comm/backend_facts.h"
#include "measure/group_measurer.h"

namespace diapason::cli {
namespace {

// Options of measuring with ranks of our own.
constexpr const char* kNotForJobs[] = {
    "--samples",      "--ranks", "--backend",  "--cluster",  "--limit",
    "--library-file", "--seed",  "--datatype", "--compute",  "--iteration",
    "--bucket-bytes", "--nodes", "--launcher", "--hostfile", "--launcher-args"};

const char* StageText(tune::Stage stage) {
  switch (stage) {
    case tune::Stage::kStarting:
      return "1 of 4, start";
    case tune::Stage::kMeasuring:
      return "2 of 4, measure";
    case tune::Stage::kPlanning:
      return "3 of 4, plan";
    case tune::Stage::kVerifying:
      break;
  }
  return "4 of 4, verify";
}

std::string SizesText(const std::vector<search::CallCase>& call_cases) {
  std::vector<std::string> names;
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  size_t candidates = 0;
  for (const search::CallCase& call_case : call_cases) {
    const std::string name = measure::CollectiveText(call_case.trial.operation);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    least = std::min(least, call_case.trial.bytes);
    most = std::max(most, call_case.trial.bytes);
    candidates = std::max(candidates, call_case.candidates.size());
  }
  return Join(names, ", ") + " of " + FormatBytes(least) +
         (least == most ? "" : " to " + FormatBytes(most)) +
         Format(" ({}, up to {} configurations each)", Count(call_cases.size(), "call"),
                candidates);
}

Result<tune::TuningRequest> RequestOf(TuneOptions* options) {
  SweepOptions& sweep = options->sweep;
  // The library fills in what the command line does not name.
  if (!options->sizes_given) sweep.sizes = "1K";
  RETURN_IF_ERROR(sweep.Read());
  if (!options->sizes_given) sweep.plan.sizes.clear();
  if (sweep.nodes.size() != 1) {
    return Invalid("a policy is tuned for one number of nodes at a time");
  }
  tune::TuningRequest request;
  request.ranks = sweep.ranks;
  request.launcher = sweep.launcher;
  request.nodes = sweep.nodes.front();
  request.plan = sweep.plan;
  request.budget = options->budget;
  request.samples = options->samples;
  request.iterate = options->Iterates();
  request.iteration = options->iteration;
  if (!options->bucket_bytes.empty()) {
    const Result<uint64_t> bytes = ParseBytes(options->bucket_bytes);
    if (!bytes.ok()) return bytes.status().WithContext("--bucket-bytes");
    request.bucket_bytes = bytes.value();
  }
  request.compute = options->compute;
  request.workload = options->workload;
  request.output = options->output;
  request.command_line = sweep.command_line;
  return request;
}

// Before the ranks start: if they do not, this says what was to be tuned.
void PrintGround(const TuneOptions& options, const tune::TuneGround& ground) {
  if (!ground.why.empty()) PrintOut("found    {}\n", ground.why);
  if (!options.job.file.empty() && comm::BackendOf(options.job.library) == ground.backend) {
    PrintOut("file     {}: {}\n", options.job.file, options.job.WhyText());
  }
  std::fflush(stdout);
}

void PrintStart(const TuneOptions& options, const measure::Subject& subject,
                const tune::TuneGoal& goal) {
  PrintOut("library  {}, {} on {}\n", subject.description,
           Count(static_cast<size_t>(subject.ranks), "rank"),
           Count(static_cast<size_t>(subject.nodes), "node"));
  if (const std::string crowded = measure::CrowdedText(subject); !crowded.empty()) {
    PrintOut("crowded  {}\n", crowded);
  }
  PrintOut("tuning   {}, within {}\n\n", SizesText(goal.call_cases), DurationText(options.budget));
  std::fflush(stdout);
}

Result<int> PrintResult(const TuneOptions& options, const tune::TuningResult& result) {
  const tune::TuneOutcome& outcome = result.outcome;
  if (outcome.interrupted) {
    Warn("interrupted: nothing was verified, so no policy was written" +
         std::string(result.older_policy ? " (policy.conf is from an earlier run)" : "") +
         "; the samples are in " + result.files.store);
  }
  if (options.json) {
    WriteOut(TuneJson(options, outcome, result.goal, result.files));
  } else if (!outcome.interrupted) {
    PrintOut("{}{}", TuneTable(outcome, result.goal),
             TuneSummary(outcome, result.goal, result.relaunched));
    if (result.Decided()) WriteOut(TuneUse(outcome, result.files));
  }
  if (outcome.interrupted) return kExitInterrupted;
  if (result.Decided()) return kExitFine;
  return Unavailable("there was not enough time: no policy was written; the samples are in " +
                     result.files.store);
}

// `run` is one of the ways to tune, with these events.
template <typename Run>
Result<int> Tune(const TuneOptions& options, const Run& run) {
  CatchInterrupts();
  ProgressLine line("tune", options.quiet);
  tune::TuningEvents events;
  events.warn = Warn;
  events.found = [&](const tune::TuneGround& ground) {
    if (!options.json) PrintGround(options, ground);
  };
  events.started = [&](const tune::TuneGround&, const measure::Subject& subject,
                       const tune::TuneGoal& goal) {
    if (!options.json) PrintStart(options, subject, goal);
  };
  events.progress = [&](tune::Stage stage, double share, const std::string& what) {
    if (line.Due()) {
      line.Show(share, Format("step {}, {} left; ", StageText(stage),
                              DurationText(options.budget * (1 - share))) +
                           what);
    }
    return !Interrupted();
  };
  const Result<tune::TuningResult> result = run(events);
  line.Clear();
  RETURN_IF_ERROR(result);
  return PrintResult(options, result.value());
}

Result<int> RunTune(TuneOptions options) {
  ASSIGN_OR_RETURN(tune::TuningRequest request, RequestOf(&options));
  ASSIGN_OR_RETURN(options.job, UseJobLibrary(request.ranks));
  if (!IsLaunched()) {
    return Tune(options,
                [&](const tune::TuningEvents& events) { return tune::RunTuning(request, events); });
  }
  // mpirun, srun or torchrun has made this process one rank of many: rank 0 leads.
  ASSIGN_OR_RETURN(const tune::TuneGround ground, tune::FindGround(&request));
  return OnEveryRank(request.ranks, true, [&](Group* group) -> Result<int> {
    if (group->rank() != 0) {
      RETURN_IF_ERROR(measure::GroupMeasurer::Follow(group));
      return kExitFine;
    }
    return Tune(options, [&](const tune::TuningEvents& events) {
      return tune::RunTuningOn(group, request, ground, events);
    });
  });
}

// `tune -- COMMAND` shares the options of time and output with the others.
Result<int> RunJob(const TuneOptions& options, TuneJobOptions job,
                   const std::vector<std::string>& command, bool budget_given) {
  job.request.command = command;
  if (budget_given) job.request.budget = options.budget;
  job.request.output = options.output;
  job.json = options.json;
  job.quiet = options.quiet;
  return RunTuneJob(job);
}

void AddTuneOptions(CommandLine* command, TuneOptions* options, TuneJobOptions* job) {
  SweepOptions& sweep = options->sweep;
  sweep.collectives.clear();
  sweep.sizes.clear();
  command
      ->AddOption("COLLECTIVE", sweep.collectives,
                  "Collectives to tune: " + Join(TunedCollectives(), ", "))
      ->Words(TunedCollectives())
      ->Check(ReadBy(measure::ParseMeasured))
      ->Default("the collectives that training uses and for which the library has choices");
  command->AddOption("--sizes", sweep.sizes, std::string("Message sizes: ") + kSizesText)
      ->TypeName("SIZES")
      ->Check(ReadBy(ParseSizes))
      ->Default("1K:64M:x2 on GPUs, 1K:4M:x2 elsewhere");
  command->AddTime("--budget", options->budget,
                   "Time limit for the whole command, from 1s to 24h; for a job 20m", 1, 86400);
  command
      ->AddOption("--samples", options->samples,
                  "Maximum number of samples of the search, and of each later step")
      ->TypeName("N")
      ->Check(Range(1, 1000000000))
      ->Default("as many as the time limit allows");
  AddTuneJobOptions(command, job);
  AddRankOptions(command, &sweep.ranks);
  command->FindOption("--ranks")->Default("one per GPU, else 4");
  command->FindOption("--limit")->Default("a sixth of --budget, from 5s to 20s");
  command->AddOption("-d,--datatype", sweep.type, "Data type: " + Join(DataTypeWords(), ", "))
      ->TypeName("NAME")
      ->Words(DataTypeWords())
      ->Check(ReadBy(ParseDataType))
      ->ShowDefault();
  command->Heading("Objective");
  command
      ->AddOption("--objective", options->objective,
                  "What to optimise. collective: the calls alone; iteration: a whole step that "
                  "overlaps calls with compute")
      ->Check(OneOf({"collective", "iteration"}))
      ->ShowDefault();
  command
      ->AddOption("--iteration", options->iteration,
                  "Training step to optimise: ddp, fsdp, tp or moe")
      ->Words(measure::PresetNames())
      ->Check(OneOf(measure::PresetNames()))
      ->Default("ddp");
  command->AddOption("--bucket-bytes", options->bucket_bytes, "Size of each bucket of the step")
      ->TypeName("SIZE");
  command->AddTime("--compute", options->compute, "Compute time of the step", 1e-6, 60)
      ->Default("5ms on GPUs, 20ms elsewhere");
  command
      ->AddOption("--workload", options->workload,
                  "Files with the calls of a recorded job, to tune for instead of sizes: journals "
                  "(DIAPASON_JOURNAL), or logs with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL")
      ->TypeName("FILE");
  command->Heading("Several hosts");
  command->AddOption("--nodes", sweep.node_text, "Number of hosts")->ShowDefault();
  command
      ->AddOption("--launcher", sweep.launcher_name,
                  "Launcher for the ranks: local, mpirun or srun")
      ->Check(OneOf({"local", "mpirun", "srun"}))
      ->ShowDefault();
  command->AddOption("--hostfile", sweep.host_file, "mpirun host file")->TypeName("FILE");
  command->AddOption("--launcher-args", sweep.launcher_arguments,
                     "Further arguments for mpirun or srun, separated by blanks");
  command->Heading("Output");
  command->AddOption("-o,--output", options->output, "Folder to write all files to")
      ->TypeName("DIR")
      ->ShowDefault();
  command->AddJson(options->json);
  command->AddFormat();
  command->AddQuiet(options->quiet);
}

}  // namespace

void AddTune(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<TuneOptions>();
  auto job = std::make_shared<TuneJobOptions>();
  CommandLine* command = parent->AddCommand(
      "tune", "Find, verify and report the fastest configurations for a job, or for this machine");
  command->MayTakeCommand();
  AddTuneOptions(command, options.get(), job.get());
  command->Describe(
      "With a command after --, tunes that job for the time of its iterations: looks at it, tries "
      "configurations inside it, verifies the best in fresh launches, and leaves a policy, "
      "measurements and a report. Works under any launcher, and starts the command several times. "
      "Of the options it takes --budget and those under 'A job' and 'Output'.");
  command->Example("diapason tune --budget 20m -- torchrun --nproc-per-node 8 train.py",
                   "Make the iterations of a training job faster");
  command->Describe(
      "Without a command, measures the configurations of every call with an adaptive search, plans "
      "a policy, and "
      "compares it with the library's own choice on newly started ranks. Choices that this "
      "verification does not confirm are left to the library. Sizes between the given ones are "
      "measured too wherever the policy would change something there. The output folder then "
      "contains "
      "policy.conf, measurements.db and report.html, for Open MPI also rules.conf; the last lines "
      "of the output show how a job uses them.");
  command->Describe(
      "A configuration that hangs, crashes or computes wrong results is never chosen; the ranks "
      "are started again and the search continues. Under mpirun, srun or torchrun, which have "
      "started the ranks already, the command measures with those ranks; with --launcher it starts "
      "ranks itself and survives their crashes. Ctrl-C keeps the samples.");
  command->Example("diapason tune", "Tune this machine in two minutes");
  command->Example("diapason tune allreduce -g 4 --backend mpi --budget 30s",
                   "Tune only allreduce of Open MPI");
  command->Example("diapason tune --objective iteration --iteration fsdp",
                   "Tune for steps that overlap communication with compute");
  command->Example("diapason tune --workload j.0 --launcher srun --nodes 2",
                   "Tune for the calls of a recorded job, on two hosts");
  command->ExitStatus(kExitInterrupted,
                      "interrupted by Ctrl-C: the samples are kept, no policy is written");
  command->SeeAlso({"sweep", "plan", "bench", "report", "policy"});
  command->Callback([command, options, job, run] {
    const bool budget_given = command->FindOption("--budget")->Given();
    if (!command->ProgramGiven().empty()) {
      if (!options->sweep.collectives.empty() || !options->sweep.sizes.empty() ||
          !options->workload.empty() || options->Iterates()) {
        throw UsageError{"--",
                         "the command's own calls are tuned: give neither collectives nor "
                         "sizes, --workload or --objective"};
      }
      for (const char* name : kNotForJobs) {
        if (command->FindOption(name)->Given()) {
          throw UsageError{name, "it is not for a command after --, which starts its own ranks"};
        }
      }
      *run = [options, job, program = command->ProgramGiven(), budget_given] {
        return RunJob(*options, *job, program, budget_given);
      };
      return;
    }
    for (const Option* one : job->own) {
      if (one->Given()) throw UsageError{one->Name(), "it needs a command after --"};
    }
    options->collectives_given = !options->sweep.collectives.empty();
    options->sizes_given = !options->sweep.sizes.empty();
    if (!options->workload.empty() && (options->collectives_given || options->sizes_given)) {
      throw UsageError{"--workload", "the recorded job defines the collectives and sizes"};
    }
    if (!options->Iterates() &&
        (options->compute > 0 || !options->bucket_bytes.empty() || !options->iteration.empty())) {
      throw UsageError{"--iteration, --compute, --bucket-bytes", "they need --objective iteration"};
    }
    if (options->Iterates() && (options->collectives_given || options->sizes_given)) {
      throw UsageError{"--objective iteration",
                       "the step has its collectives; --bucket-bytes sets their size"};
    }
    if (options->iteration.empty()) options->iteration = "ddp";
    *run = [options] { return RunTune(*options); };
  });
}

}  // namespace diapason::cli
