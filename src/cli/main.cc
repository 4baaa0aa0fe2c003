#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"
#include "launch/helper.h"
#include "launch/local_launch.h"
#include "measure/worker.h"

namespace diapason::cli {
namespace {

void DescribeTool(CommandLine* app) {
  app->Describe(
      "diapason chooses the algorithm, protocol and channel count of each NCCL and RCCL call "
      "through the tuner plugin interface of these libraries, from a policy file or from what it "
      "learns while the job runs. It measures collectives on the hardware at hand, turns "
      "measurements into policies, and finds problems that no choice per call can solve: "
      "environment variables, threads, placement, hardware.");
  app->Describe(
      "Sizes are written as 64K, 4M or 4MiB, lists of sizes as 1K,8K or 1K:8M:x2, times as 500ms, "
      "90s, 2m or plain seconds, shares as 5%. Results are printed on standard output, progress "
      "and warnings on standard error.");
  app->Example("diapason tune -- torchrun --nproc-per-node 8 train.py",
               "Find, verify and write the fastest configurations for a job");
  app->Example("diapason run --policy diapason-tuned/policy.conf -- COMMAND",
               "Run the job with them");
  app->Example("diapason tune", "Tune this machine without a job, in two minutes");
  app->Example("diapason doctor", "Find problems of this machine that affect collectives");
  app->Example("diapason bench allreduce -g 4", "Time a collective on four ranks");
  app->Example("diapason sweep allreduce -g 4 --sizes 1K:1M:x8",
               "Measure every configuration of allreduce");
  app->ExitStatus(kExitFine,
                  "success; for commands that report findings: nothing worse than notes");
  app->ExitStatus(
      kExitFailed,
      "the input is invalid, a required file or resource is missing, or a check failed");
  app->ExitStatus(kExitUsage, "the command line is invalid");
  app->ExitStatus(kExitWarnings, "there are warnings (doctor, env check, logs, proxy)");
  app->ExitStatus(kExitErrors, "there are errors (doctor, env check, logs, proxy)");
  app->ExitStatus(kExitInterrupted,
                  "interrupted by Ctrl-C; `launch` returns the status of its job");
  app->Variable("DIAPASON_*",
                "Settings of the plugin and of this tool; `diapason settings` lists them");
  app->Variable("NO_COLOR", "If set, output is printed without colours");
  app->Variable("CLICOLOR_FORCE",
                "If set, and not to 0, output has colours also where it is not a terminal");
}

// Only the tool's own --json counts, not that of a program that it starts.
bool AsksForJson(int argc, char** argv) {
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) return true;
  }
  return false;
}

// If standard input, output or error is closed, the next file to be opened would get its descriptor
// and be overwritten. Opens a placeholder that cannot be written to, so that a failed write is
// reported.
void HoldStandardStreams() {
  for (int stream = 0; stream <= 2; ++stream) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    const int held = ::open("/dev/null", O_RDONLY);
    if (held >= 0 && held != stream) ::close(held);
  }
}

int Main(int argc, char** argv) {
  HoldStandardStreams();
  if (const std::optional<int> status =
          launch::RunHelper(argc, argv, {launch::kLocalLaunch, measure::kWorker})) {
    return *status;
  }
  ExpectJson(AsksForJson(argc, argv));
  CommandAction run;
  const int answered = ReadCommandLine(
      argc, argv, "Tuner for GPU collectives: measures and chooses what NCCL and RCCL run",
      [&run](CommandLine* app) {
        DescribeTool(app);
        app->Heading("Tune in one step");
        AddTune(app, &run);
        app->Heading("Run a job");
        AddRun(app, &run);
        app->Heading("Policies and decisions");
        AddAsk(app, &run);
        AddPolicy(app, &run);
        AddJournal(app, &run);
        AddFreeze(app, &run);
        AddServe(app, &run);
        app->Heading("Measurement");
        AddBackends(app, &run);
        AddBench(app, &run);
        AddSweep(app, &run);
        AddCompare(app, &run);
        AddData(app, &run);
        AddLaunch(app, &run);
        AddSimulate(app, &run);
        app->Heading("Models and planning");
        AddTrain(app, &run);
        AddPredict(app, &run);
        AddPlan(app, &run);
        AddEvaluate(app, &run);
        AddReport(app, &run);
        app->Heading("Diagnosis");
        AddDoctor(app, &run);
        AddEnv(app, &run);
        AddKnobs(app, &run);
        AddLogs(app, &run);
        AddWatch(app, &run);
        AddProxy(app, &run);
        app->Heading("About the tool");
        AddSettings(app, &run);
        AddHelp(app, &run);
        AddMan(app, &run);
        AddCompletion(app, &run);
      });
  PrepareOutput();
  const Result<int> result = answered >= 0 ? answered : run ? run() : kExitUsage;
  const int status = result.ok() ? result.value() : Fail(result.status());
  FinishJson();
  // A full disk or a closed pipe is a failure.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Fail(IoError("cannot write to standard output"));
  }
  return status;
}

}  // namespace
}  // namespace diapason::cli

int main(int argc, char** argv) {
  try {
    return diapason::cli::Main(argc, argv);
  } catch (const std::exception& error) {
    return diapason::cli::Fail(diapason::Internal(error.what()));
  }
}
