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
      "Tells NCCL and RCCL, through their own plugin interfaces, which algorithm, protocol and "
      "channel count to run for each call, from a policy file that a person can read or from what "
      "it learns while the job runs. It measures collectives on whatever the machine has, turns "
      "measurements into policies, and finds what no call can change: variables, threads, "
      "placement, hardware.");
  app->Describe(
      "Sizes are written 64K, 4M or 4MiB, lists of them 1K,8K or 1K:8M:x2; times 500ms, 90s, 2m or "
      "plain seconds; shares 5%. Results go to standard output, progress and warnings to standard "
      "error.");
  app->Example("diapason doctor", "What is wrong with this machine for collectives");
  app->Example("diapason bench allreduce -g 4", "Time a collective on four ranks");
  app->Example("diapason sweep allreduce -g 4 --sizes 1K:1M:x8",
               "Measure every configuration of it");
  app->ExitStatus(kExitFine, "fine; of commands that judge: nothing worse than notes");
  app->ExitStatus(kExitFailed, "the input is wrong, something is not there, or a check failed");
  app->ExitStatus(kExitUsage, "the command line is wrong");
  app->ExitStatus(kExitWarnings, "warnings were found (doctor, env check, logs, proxy)");
  app->ExitStatus(kExitErrors, "errors were found (the same)");
  app->ExitStatus(kExitInterrupted, "ended by Ctrl-C; `launch` returns its job's status");
  app->Variable("DIAPASON_*", "Settings of the plugin and of this tool: `diapason settings`");
  app->Variable("NO_COLOR", "Where it is set, nothing is printed in colour");
}

// --json of this tool, not of a program that is started.
bool AsksForJson(int argc, char** argv) {
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) return true;
  }
  return false;
}

// Where standard input, output or error is closed, the next file that is opened would become it,
// and be written into. What is put there instead cannot be written to, so that nothing is lost
// unseen.
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
      argc, argv,
      "A tuning fork for GPU collectives: chooses, measures and mends what NCCL and RCCL run",
      [&run](CommandLine* app) {
        DescribeTool(app);
        app->Heading("All in one");
        AddTune(app, &run);
        app->Heading("Choose");
        AddAsk(app, &run);
        AddPolicy(app, &run);
        AddJournal(app, &run);
        AddFreeze(app, &run);
        app->Heading("Measure");
        AddBackends(app, &run);
        AddBench(app, &run);
        AddSweep(app, &run);
        AddData(app, &run);
        AddLaunch(app, &run);
        AddSimulate(app, &run);
        app->Heading("Learn and decide");
        AddTrain(app, &run);
        AddPredict(app, &run);
        AddPlan(app, &run);
        AddEvaluate(app, &run);
        AddReport(app, &run);
        app->Heading("Look and mend");
        AddDoctor(app, &run);
        AddEnv(app, &run);
        AddKnobs(app, &run);
        AddLogs(app, &run);
        AddWatch(app, &run);
        AddProxy(app, &run);
        app->Heading("The tool itself");
        AddSettings(app, &run);
        AddMan(app, &run);
        AddCompletion(app, &run);
      });
  const int status = answered >= 0 ? answered : run ? run() : kExitUsage;
  FinishJson();
  // A full disk or a closed pipe must not pass for success.
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
