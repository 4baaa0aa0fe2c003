#include "cli/commands/tune/tune_job.h"

#include <signal.h>

#include <cstdio>
#include <ctime>
#include <filesystem>

#include "base/environment.h"
#include "base/owner_lock.h"
#include "base/text.h"
#include "cli/commands/tune/job_text.h"
#include "cli/commands/tune/tune_mpi.h"
#include "cli/framework/command.h"
#include "cli/framework/progress_line.h"
#include "dataset/words.h"
#include "domain/fingerprint.h"
#include "job/mpi_program.h"
#include "job_tune/leave.h"
#include "job_tune/tuning.h"

namespace diapason::cli {
namespace {

constexpr size_t kLongestLine = 600;

struct EndSignal {
  const char* name;
  int number;
};
constexpr EndSignal kEndSignals[] = {{"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},
                                     {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"QUIT", SIGQUIT}};

std::vector<std::string> SignalNames() {
  std::vector<std::string> names;
  for (const EndSignal& one : kEndSignals) names.emplace_back(one.name);
  return names;
}

// As `tune` without a command does: two runs would take each other's files for their own.
Result<std::unique_ptr<OwnerLock>> LockFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return IoError("cannot create the folder '" + folder + "': " + error.message() +
                   "; name another one with -o");
  }
  Result<std::unique_ptr<OwnerLock>> lock =
      OwnerLock::Take(folder + "/tune.lock", "the folder '" + folder + "'");
  if (lock.ok() || lock.status().code() != ErrorCode::kUnavailable) return lock;
  return Unavailable(lock.status().message() +
                     ": wait for it to end, or choose another folder with --output");
}

bool TunesMpi(const TuneJobOptions& options) {
  if (options.library != "auto") return options.library == "mpi";
  job::ReadOptions read;
  read.environment = &ProcessEnvironment();
  return job::IsMpiProgram(job::ReadCommand(options.request.command, read), ProcessEnvironment());
}

}  // namespace

void AddTuneJobOptions(CommandLine* command, TuneJobOptions* options) {
  job_tune::Request& request = options->request;
  command->Heading("A job");
  const auto own = [options](Option* option) { options->own.push_back(option); };
  own(command
          ->AddOption("--launches", request.most_launches,
                      "How often the command is started at most")
          ->TypeName("N")
          ->Check(Range(3, 1000))
          ->Default(Format("{}, {} where calls are captured in CUDA graphs, {} for an MPI program",
                           job_tune::kMostLaunches, job_tune::kMostWithGraphs, kMpiLaunches)));
  own(command
          ->AddOption("--library", options->library,
                      "Collectives that are tuned: nccl (also RCCL), mpi, or auto: those of MPI if "
                      "the program is linked with an MPI library and none for GPUs")
          ->TypeName("NAME")
          ->Words({"auto", "nccl", "mpi"})
          ->Check(OneOf({"auto", "nccl", "mpi"}))
          ->ShowDefault());
  own(command
          ->AddOption("--metric", request.metric.pattern,
                      "Regular expression with one group: a number that the command prints, and "
                      "that tuning must not change, such as the loss")
          ->TypeName("REGEX"));
  own(command
          ->AddOption("--metric-tolerance", request.metric.tolerance,
                      "Largest relative change of the metric, unless launches with the default "
                      "differ by more")
          ->TypeName("SHARE")
          ->Check(Range(0.0, 1.0))
          ->ShowDefault());
  own(command
          ->AddOption("--between", request.between,
                      "Shell command that runs between two launches, for example to remove "
                      "checkpoints")
          ->TypeName("COMMAND"));
  own(command
          ->AddOption("--signal", options->signal,
                      "Signal that ends the command: " + Join(SignalNames(), ", "))
          ->TypeName("NAME")
          ->Words(SignalNames())
          ->Check(OneOf(SignalNames()))
          ->ShowDefault());
  own(command->AddTime("--grace", request.grace, "Time between that signal and SIGKILL", 0.1,
                       3600));
  own(command
          ->AddOption(
              "--store", request.store,
              "Store through which the ranks agree, in the syntax of DIAPASON_STORE; one at "
              "tcp:// and this host is served by this command")
          ->TypeName("STORE")
          ->Default("DIAPASON_STORE, else shm on one host, and tcp:// at a free port on several"));
}

Result<int> RunTuneJob(const TuneJobOptions& given) {
  TuneJobOptions options = given;
  for (const EndSignal& one : kEndSignals) {
    if (options.signal == one.name) options.request.end_signal = one.number;
  }
  // Before anything in it changes, and until everything is written.
  ASSIGN_OR_RETURN(const std::unique_ptr<OwnerLock> lock, LockFolder(options.request.output));
  if (TunesMpi(options)) {
    options.request.mpi = true;
    if (options.request.most_launches == 0) options.request.most_launches = kMpiLaunches;
    return RunTuneMpi(options);
  }
  ProgressLine line("tune", options.quiet);
  job_tune::Events events;
  events.say = [&](const std::string& text) {
    if (options.quiet) return;
    WriteError("diapason: " + dataset::Printable(text, kLongestLine) + "\n");
  };
  events.progress = [&](double share, const std::string& what) {
    if (line.Due()) line.Show(share, what);
  };
  Result<job_tune::JobTuneResult> tuned =
      job_tune::TuneJob(options.request, ProcessEnvironment(), events);
  line.Clear();
  RETURN_IF_ERROR(tuned);
  job_tune::JobTuneResult result = std::move(tuned).value();
  job_tune::LeaveOptions leave;
  leave.folder = options.request.output;
  leave.command_line = "diapason tune -- " + result.command;
  leave.fingerprint = MachineFingerprint();
  leave.driver = DriverVersion();
  leave.now = static_cast<double>(std::time(nullptr));
  RETURN_IF_ERROR(job_tune::Leave(leave, &result));
  PrintOut("{}", options.json ? job_tune::ResultJson(result) : JobTuneText(result));
  if (result.interrupted) return kExitInterrupted;
  switch (result.verdict) {
    case job_tune::Verdict::kFaster:
    case job_tune::Verdict::kNothingToGain:
      return kExitFine;
    default:
      return kExitFailed;
  }
}

}  // namespace diapason::cli
