#include "cli/commands/tune/tune_job.h"

#include <signal.h>

#include <cstdio>
#include <ctime>

#include "base/environment.h"
#include "base/text.h"
#include "cli/commands/tune/job_text.h"
#include "cli/framework/command.h"
#include "cli/framework/progress_line.h"
#include "dataset/words.h"
#include "domain/fingerprint.h"
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
          ->AddOption("--store", request.store,
                      "Store through which the ranks agree, in the syntax of DIAPASON_STORE; "
                      "several hosts need one")
          ->TypeName("STORE")
          ->Default("DIAPASON_STORE, else shm"));
}

Result<int> RunTuneJob(const TuneJobOptions& given) {
  TuneJobOptions options = given;
  for (const EndSignal& one : kEndSignals) {
    if (options.signal == one.name) options.request.end_signal = one.number;
  }
  ProgressLine line("tune", options.quiet);
  job_tune::Events events;
  events.say = [&](const std::string& text) {
    if (options.quiet) return;
    line.Clear();
    std::fprintf(stderr, "diapason: %s\n", dataset::Printable(text, kLongestLine).c_str());
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
