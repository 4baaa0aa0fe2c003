#include "cli/commands/run/run.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/environment.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"
#include "cli/framework/findings.h"
#include "dataset/words.h"
#include "mpi_profile/mpi_profile.h"

namespace diapason::cli {
namespace {

using dataset::Printable;

constexpr double kLongestGrace = 86400;
constexpr double kLongestTimeout = 1e8;  // about three years
constexpr int kExitTimedOut = 124;
constexpr size_t kLongestLine = 600;
constexpr char kTunedPolicy[] = "diapason-tuned/policy.conf";

struct RunOptions {
  job::JobRequest request;
  std::string library = "auto";
  bool learn = false;
  bool compare = false;
  bool observe = false;
  bool json = false;
  bool quiet = false;
  double grace = 0;
  double timeout = 0;
};

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(std::ceil(seconds * 1000)));
}

void SayLine(const std::string& text) { WriteError("diapason: " + text + "\n"); }

// Warnings and errors, a line each; what is only worth a note is shown by --dry-run.
void SayFindings(const std::vector<Finding>& findings, Severity least) {
  for (const Finding& one : findings) {
    if (one.severity < least) continue;
    SayLine(std::string(SeverityName(one.severity)) + ": " + Printable(one.title, kLongestLine) +
            (one.action.empty() ? "" : ". " + Printable(one.action, kLongestLine)));
  }
}

// What neither the options nor the environment name.
Status CheckSomethingToDo(const RunOptions& options, const job::PreparedJob& prepared) {
  if (options.compare && !prepared.policy.has_value()) {
    return Invalid("there is nothing to compare with the default: give --policy FILE");
  }
  if (options.learn || options.observe || prepared.policy.has_value()) return {};
  const std::string tuned = FileExists(kTunedPolicy)
                                ? std::string("; did you mean `--policy ") + kTunedPolicy + "`?"
                                : "";
  return Invalid("there is nothing to apply: give --policy FILE, --learn or --observe" + tuned);
}

void SayOutcome(const job::PreparedJob& prepared, const job::JobOutcome& outcome) {
  SayLine("chosen  " + Printable(outcome.ChosenText(prepared), 4 * kLongestLine));
  SayLine("gained  " + Printable(outcome.GainText(prepared), 4 * kLongestLine));
  SayLine("agreed  " + Printable(outcome.AgreementText(prepared), 4 * kLongestLine));
  for (const std::string& one : outcome.unreadable) {
    SayLine("warning: " + Printable(one, kLongestLine));
  }
}

// Journals that are worth a look outlive the run: under a name that says so.
void KeepJournals(job::PreparedJob* prepared) {
  if (prepared->own_folder == nullptr) return;
  std::error_code error;
  const std::string kept = prepared->journal_dir + ".kept";
  std::filesystem::rename(prepared->journal_dir, kept, error);
  if (error) return;
  prepared->journal_dir = kept;
  SayLine("the journals are kept: diapason journal check " + ShellWord(kept) + "/*");
}

int StatusOf(const job::Supervised& ended, const job::JobOutcome& outcome) {
  if (ended.limited) return kExitTimedOut;
  if (ended.status != kExitFine) return ended.status;
  return outcome.Differed() ? kExitFailed : kExitFine;
}

// What an MPI program did with its time. Recordings that say nothing are no failure of the command.
Result<int> ReportMpi(const RunOptions& options, const job::PreparedJob& prepared,
                      const job::Supervised& ended) {
  const int status = ended.limited ? kExitTimedOut : ended.status;
  const Result<mpi_profile::MpiProfile> profile = mpi_profile::ReadProfile(prepared.Journals());
  if (options.json) {
    PrintOut("{}\n", MpiRunJson(prepared, ended, profile, status));
    return status;
  }
  if (options.quiet) return status;
  if (!profile.ok()) {
    SayLine("looked  " + Printable(profile.status().message(), kLongestLine));
    return status;
  }
  SayLine("looked  " + Printable(profile.value().Headline(), kLongestLine));
  SayLine("share   " + Printable(profile.value().ShareText(), kLongestLine));
  if (profile.value().open_mpi) {
    SayLine("rules   " + Printable(profile.value().RulesText(), kLongestLine));
  }
  for (const std::string& note : profile.value().notes) {
    SayLine("note: " + Printable(note, kLongestLine));
  }
  return status;
}

Result<int> Run(const RunOptions& options) {
  ASSIGN_OR_RETURN(job::PreparedJob prepared, job::Prepare(options.request, ProcessEnvironment()));
  RETURN_IF_ERROR(CheckSomethingToDo(options, prepared));
  const bool refused = Worst(prepared.findings) == Severity::kError;
  if (options.request.dry_run) {
    PrintOut("{}", options.json ? DryRunJson(prepared) + "\n" : DryRunText(prepared));
    if (!options.json) SayFindings(prepared.findings, Severity::kNote);
    return refused ? kExitFailed : kExitFine;
  }
  SayFindings(prepared.findings, options.quiet ? Severity::kError : Severity::kWarning);
  if (refused) return Invalid("the command was not started: the ranks would not get what is set");

  job::SupervisionOptions supervision;
  supervision.command = prepared.handed.words;
  supervision.environment = prepared.handed.Environment();
  supervision.grace = Milliseconds(options.grace);
  if (options.grace > 0) supervision.limit_grace = supervision.grace;
  supervision.limit = Milliseconds(options.timeout);
  supervision.say = SayLine;
  // The document alone is on standard output.
  if (options.json) supervision.streams[1] = STDERR_FILENO;
  std::fflush(nullptr);
  ASSIGN_OR_RETURN(const job::Supervised ended, job::RunToEnd(supervision));
  if (!ended.started) {
    Fail(Unavailable(ended.trouble));
    return ended.status;
  }
  if (prepared.mpi) return ReportMpi(options, prepared, ended);
  job::JobOutcome outcome = job::ReadOutcome(prepared.Journals(), options.compare);
  outcome.status = ended.status;
  if (!prepared.learned.empty()) {
    const Result<std::string> after = ReadFile(prepared.learned, policy::kMostBytes);
    if (after.ok()) job::AddLearnedRows(prepared.learned_before, after.value(), &outcome);
  }
  const int status = StatusOf(ended, outcome);
  if (outcome.Differed() || !outcome.unreadable.empty()) KeepJournals(&prepared);
  if (options.json) {
    PrintOut("{}\n", RunJson(prepared, ended, outcome, status));
  } else if (!options.quiet || outcome.Differed()) {
    SayOutcome(prepared, outcome);
  }
  return status;
}

void Describe(CommandLine* command) {
  command->Describe(
      "Sets the variables by which NCCL and RCCL load the plugin, and those of the plugin: policy, "
      "mode, journals. Hands them to every rank: with -x for mpirun, --export and --container-env "
      "for srun, -genv for Hydra's mpiexec, -e for docker and podman, and by the environment for "
      "torchrun, deepspeed, accelerate and every other program, also behind env, timeout, nice, "
      "numactl and `bash -c`. Checks beforehand that they will be read; if not, the command is not "
      "started.");
  command->Describe(
      "An MPI program without NCCL or RCCL gets the recorder of its calls instead "
      "(libdiapason-mpi-recorder.so, preloaded) and, with --policy, a rules file for Open MPI; at "
      "its end the lines say how much of an iteration and of the program its collectives took, and "
      "what rules can change of that.");
  command->Describe(
      "The command has the standard streams and gets the signals. At its end three lines on "
      "standard error say what was chosen, what it gained and whether all ranks agreed.");
  command->Example("diapason run --policy policy.conf -- torchrun train.py",
                   "Run a job with a policy");
  command->Example("diapason run --learn -- mpirun -n 8 ./train",
                   "Let a job learn; the next one starts from what it learned");
  command->Example("diapason run --compare --policy policy.conf -- torchrun train.py",
                   "Measure what a policy gains, in turns with the library's default");
  command->Example("diapason run --observe -- mpirun -n 16 ./solver input.dat",
                   "See what an MPI program does with its time");
  command->Example("diapason run --dry-run --learn -- srun -N 2 ./train.sh",
                   "Show what would be set and started");
  command->ExitStatus(kExitFine, "the command succeeded, and no two ranks differed");
  command->ExitStatus(
      kExitFailed,
      "the command was not started, or it succeeded and its ranks chose differently; "
      "else the status of the command, 128 + N if signal N killed it");
  command->ExitStatus(kExitTimedOut, "the time of --timeout has passed");
  command->ExitStatus(126, "the command is not executable");
  command->ExitStatus(127, "the command was not found");
  command->SeeAlso({"tune", "journal", "policy", "launch", "env-check"});
}

}  // namespace

void AddRun(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<RunOptions>();
  job::JobRequest& request = options->request;
  CommandLine* command =
      parent->AddCommand("run", "Run a job with a policy or with learning, under any launcher");
  Describe(command);
  command->AddOption("--policy", request.policy, "Policy file to apply")
      ->TypeName("FILE")
      ->Default("the one that DIAPASON_POLICY names");
  Option* learn = command->AddFlag("--learn", options->learn,
                                   "Try configurations while the job runs, and keep the fastest");
  command
      ->AddOption("--learned", request.learned,
                  "Policy file for what is learned, which the next job starts from")
      ->TypeName("FILE")
      ->Default(std::string("DIAPASON_LEARNED, else ") + job::kLearnedFile)
      ->Needs(learn);
  Option* compare = command->AddFlag(
      "--compare", options->compare,
      "Run the library's default and the policy in turns, and say which makes iterations faster");
  compare->Excludes(learn);
  command
      ->AddFlag("--observe", options->observe,
                "Record what a policy would choose, and leave every choice to the library")
      ->Excludes(learn)
      ->Excludes(compare);
  command
      ->AddOption(
          "--store", request.store,
          "Store through which the ranks agree, in the syntax of DIAPASON_STORE; one at tcp:// and "
          "this host is served by this command")
      ->TypeName("STORE")
      ->Default("DIAPASON_STORE, else shm on one host, and tcp:// at a free port on several");
  command
      ->AddOption("--library", options->library,
                  "Collectives that the job is about: nccl (also RCCL), mpi, or auto: those of MPI "
                  "if the program is linked with an MPI library and none for GPUs")
      ->TypeName("NAME")
      ->Words({"auto", "nccl", "mpi"})
      ->Check(OneOf({"auto", "nccl", "mpi"}))
      ->ShowDefault();
  command
      ->AddOption("--journal-dir", request.journal_dir,
                  "Folder for the journals of all ranks, which are kept")
      ->TypeName("DIR")
      ->Default("a folder that is removed at the end unless ranks differ");
  command->AddTime(
      "--grace", options->grace,
      "Time between a signal that asks for the end, or --timeout, and SIGKILL; 0 means "
      "never after a signal, and 30 s after --timeout",
      0, kLongestGrace);
  command->AddTime("--timeout", options->timeout,
                   "Time after which the command gets SIGTERM; 0 means never", 0, kLongestTimeout);
  command->Heading("Output");
  command->AddFlag("--dry-run", request.dry_run,
                   "Print what would be set and started, and start nothing");
  command->AddJson(options->json,
                   "Print JSON; the command's standard output goes to standard error");
  command->AddQuiet(options->quiet, "Print only errors, and the three lines only if ranks differ");
  command->TakeCommand();
  command->Callback([command, options, run] {
    options->request.command = command->CommandAfterDashes("diapason run --policy policy.conf --");
    if (options->request.command.empty()) {
      throw UsageError{"",
                       "no command given; usage: diapason run [OPTIONS] -- COMMAND ARGUMENTS..."};
    }
    options->request.mode = options->learn     ? job::JobMode::kLearn
                            : options->compare ? job::JobMode::kCompare
                            : options->observe ? job::JobMode::kObserve
                                               : job::JobMode::kStatic;
    options->request.kind = options->library == "mpi"    ? job::JobKind::kMpi
                            : options->library == "nccl" ? job::JobKind::kNccl
                                                         : job::JobKind::kDetect;
    *run = [options] { return Run(*options); };
  });
}

}  // namespace diapason::cli
