#include "cli/commands/tune/tune.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/owner_lock.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/bench/bench_policy_report.h"
#include "cli/commands/report/report.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/interrupt.h"
#include "cli/framework/progress_line.h"
#include "cli/framework/ranks.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "measure/group_measurer.h"
#include "policy/openmpi_rules.h"
#include "policy/parse.h"

namespace diapason::cli {
namespace {

using measure::Measurer;

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
         Format(" (%s, up to %zu configurations each)", Count(call_cases.size(), "call").c_str(),
                candidates);
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

// Writes the policy in all formats, and the report. Only a failure to write the policy is an error.
// Files of an earlier run are kept.
Status WriteFiles(const tune::TuneOutcome& outcome, TuneFiles* files) {
  const std::filesystem::path folder(files->folder);
  const Result<std::string> before = ReadFile(files->policy, policy::kMostBytes);
  if (before.ok() && before.value() != outcome.policy_text) {
    files->older = (folder / "policy.old.conf").string();
    if (Status kept = WriteFileAtomically(files->older, before.value()); !kept.ok()) return kept;
  }
  std::error_code ignored;
  std::filesystem::remove(folder / "rules.conf", ignored);
  if (Status saved = WriteFileAtomically(files->policy, outcome.policy_text); !saved.ok()) {
    return saved;
  }
  if (outcome.subject.library == Library::kOpenMpi) {
    std::vector<std::string> notes;
    const Result<std::string> rules = policy::OpenMpiRulesText(outcome.policy, &notes);
    if (!rules.ok()) return rules.status();
    for (const std::string& note : notes) Warn(note);
    files->rules = (folder / "rules.conf").string();
    if (Status saved = WriteFileAtomically(files->rules, rules.value()); !saved.ok()) return saved;
  }
  ReportRequest request;
  request.inputs = {files->store};
  request.policies = {files->policy};
  request.output = files->report;
  const Result<ReportMade> report = WriteReport(request);
  if (!report.ok()) {
    Warn("the report was not written: " + report.status().message());
    files->report.clear();
  }
  return {};
}

TuneFiles OnlySamples(const TuneFiles& files) {
  TuneFiles only;
  only.folder = files.folder;
  only.store = files.store;
  return only;
}

// The work of one process, independent of the kind of ranks.
int Lead(const TuneOptions& options, const TuneGround& ground, const tune::MeasurerSource& source,
         bool relaunch) {
  Result<TuneFiles> prepared = PrepareFolder(options.output);
  if (!prepared.ok()) return Fail(prepared.status());
  TuneFiles& files = prepared.value();
  // Locked before any file changes: two processes would overwrite each other's files.
  const Result<std::unique_ptr<OwnerLock>> lock =
      OwnerLock::Take(files.folder + "/tune.lock", "the folder '" + files.folder + "'");
  if (!lock.ok()) {
    return Fail(lock.status().code() == ErrorCode::kUnavailable
                    ? Unavailable(lock.status().message() +
                                  ": wait for it to end, or choose another folder with --output")
                    : lock.status());
  }
  Result<std::unique_ptr<dataset::SampleStore>> store =
      dataset::SampleStore::Open(files.store, dataset::SampleStore::Access::kWrite);
  if (!store.ok()) return Fail(store.status());
  CatchInterrupts();

  TuneGoal goal;
  tune::TuneInputs work;
  work.store = store.value().get();
  work.source = source;
  work.call_cases = [&](const measure::Subject& subject) -> Result<std::vector<search::CallCase>> {
    const Status free = CheckNoPolicyIsSet(Settings::Read(ProcessEnvironment()), subject);
    if (!free.ok()) return free;
    Result<TuneGoal> found = FindGoal(options, subject);
    if (!found.ok()) return found.status();
    goal = std::move(found).value();
    for (const std::string& note : goal.notes) Warn(note);
    if (!options.json) {
      if (!ground.why.empty()) std::printf("found    %s\n", ground.why.c_str());
      std::printf("library  %s, %s on %s\n", subject.description.c_str(),
                  Count(static_cast<size_t>(subject.ranks), "rank").c_str(),
                  Count(static_cast<size_t>(subject.nodes), "node").c_str());
      std::printf("tuning   %s, within %s\n\n", SizesText(goal.call_cases).c_str(),
                  DurationText(options.budget).c_str());
      std::fflush(stdout);
    }
    return goal.call_cases;
  };
  tune::SessionOptions session;
  session.seconds = options.budget;
  session.samples = options.samples;
  session.seed = options.sweep.ranks.seed;
  session.relaunch = relaunch;
  session.command_line = options.sweep.command_line;
  session.origin =
      std::string("diapason tune, ") + (options.Iterates() ? "iterations" : "collectives");
  if (!options.workload.empty()) {
    session.weight = [&goal](const measure::Trial& trial) {
      for (const tune::MixEntry& entry : goal.mix.entries) {
        if (entry.operation == trial.operation && entry.bytes == trial.bytes) {
          return static_cast<double>(entry.calls);
        }
      }
      return 1.0;
    };
  }
  ProgressLine line("tune", options.quiet);
  const tune::ProgressCallback watch = [&](tune::Stage stage, double share,
                                           const std::string& what) {
    if (line.Due()) {
      line.Show(share, Format("step %s, %s left; ", StageText(stage),
                              DurationText(options.budget * (1 - share)).c_str()) +
                           what);
    }
    return !Interrupted();
  };
  const Result<tune::TuneOutcome> tuned = tune::Tune(work, session, watch);
  line.Clear();
  if (!tuned.ok()) return Fail(tuned.status());
  const tune::TuneOutcome& outcome = tuned.value();
  for (const std::string& note : outcome.notes) Warn(note);
  if (outcome.interrupted) {
    Warn("interrupted: nothing was verified, so no policy was written" +
         std::string(FileExists(files.policy) ? " (policy.conf is from an earlier run)" : "") +
         "; the samples are in " + files.store);
    if (options.json) std::fputs(TuneJson(outcome, goal, OnlySamples(files)).c_str(), stdout);
    return kExitInterrupted;
  }
  if (outcome.Undecided()) {
    if (options.json) {
      std::fputs(TuneJson(outcome, goal, OnlySamples(files)).c_str(), stdout);
    } else {
      std::printf("%s%s", TuneTable(outcome, goal).c_str(),
                  TuneSummary(outcome, goal, relaunch).c_str());
    }
    return Fail(Unavailable(
        "there was not enough time: no policy was written; the samples are in " + files.store));
  }
  if (Status written = WriteFiles(outcome, &files); !written.ok()) return Fail(written);
  if (options.json) {
    std::fputs(TuneJson(outcome, goal, files).c_str(), stdout);
    return kExitFine;
  }
  std::printf("%s%s%s", TuneTable(outcome, goal).c_str(),
              TuneSummary(outcome, goal, relaunch).c_str(), TuneUse(outcome, files).c_str());
  return kExitFine;
}

int RunTune(TuneOptions options) {
  const Result<TuneGround> ground = FindGround(&options);
  if (!ground.ok()) return Fail(ground.status());
  const Status read = options.sweep.Read();
  if (!read.ok()) return Fail(read);
  if (options.sweep.nodes.size() != 1) {
    return Fail(Invalid("a policy is tuned for one number of nodes at a time"));
  }
  if (IsLaunched()) {
    // mpirun, srun or torchrun has started this process as one of several ranks: rank 0 leads.
    return OnEveryRank(options.sweep.ranks, true, [&](Group* group) {
      if (group->rank() != 0) {
        const Status followed = measure::GroupMeasurer::Follow(group);
        return followed.ok() ? kExitFine : Fail(followed);
      }
      Result<std::unique_ptr<measure::GroupMeasurer>> leading =
          measure::GroupMeasurer::Lead(group, ClusterOf(options.sweep.ranks));
      if (!leading.ok()) return Fail(leading.status());
      const std::shared_ptr<Measurer> measurer = std::move(leading).value();
      return Lead(
          options, ground.value(), [&] { return Result<std::shared_ptr<Measurer>>(measurer); },
          false);
    });
  }
  return Lead(
      options, ground.value(),
      [&]() -> Result<std::shared_ptr<Measurer>> {
        Result<std::unique_ptr<Measurer>> made =
            MakeMeasurer(options.sweep, options.sweep.nodes.front());
        if (!made.ok()) return made.status();
        return std::shared_ptr<Measurer>(std::move(made).value());
      },
      true);
}

void AddTuneOptions(CommandLine* command, TuneOptions* options) {
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
      ->Default("1K:64M:x4 on GPUs, 1K:4M:x2 elsewhere");
  command->AddTime("--budget", options->budget, "Time limit for the whole command, from 1s to 24h",
                   1, 86400);
  command
      ->AddOption("--samples", options->samples,
                  "Maximum number of samples of the search, and of each later step")
      ->TypeName("N")
      ->Check(Range(1, 1000000000))
      ->Default("as many as the time limit allows");
  AddRankOptions(command, &sweep.ranks);
  command->FindOption("--ranks")->Default("one per GPU, else 4");
  options->limit_given = command->FindOption("--limit");
  options->limit_given->Default("a sixth of --budget, from 5s to 20s");
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
  command->AddQuiet(options->quiet);
}

}  // namespace

void AddTune(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<TuneOptions>();
  CommandLine* command = parent->AddCommand(
      "tune", "Measure, plan and verify a policy for this machine, and report its gain");
  AddTuneOptions(command, options.get());
  command->Describe(
      "Measures the configurations of every call with an adaptive search, plans a policy, and "
      "compares it with the library's own choice on newly started ranks. Choices that this "
      "verification does not confirm are left to the library. The output folder then contains "
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
  command->Callback([options, run] {
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
    // A hang must not take longer than the rest of the run.
    if (!options->limit_given->Given()) {
      options->sweep.ranks.limit = std::clamp(options->budget / 6, 5.0, 20.0);
    }
    *run = [options] { return RunTune(*options); };
  });
}

}  // namespace diapason::cli
