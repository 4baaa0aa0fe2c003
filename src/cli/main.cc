#include <cstdio>

#include "cli/command.h"
#include "cli/command_line.h"

namespace diapason::cli {

int Fail(const Status& status) {
  std::fprintf(stderr, "diapason: error: %s\n", status.message().c_str());
  return kExitFailed;
}

void Warn(const std::string& text) {
  std::fprintf(stderr, "diapason: warning: %s\n", text.c_str());
}

namespace {

int Main(int argc, char** argv) {
  Run run;
  const int answered = ReadCommandLine(
      argc, argv,
      "diapason: a tuning fork for GPU collectives.\n"
      "Tells NCCL and RCCL, through their own plugin interface, which algorithm, protocol "
      "and channel count to run, from a policy a person can read.",

      "Exit status: 0 fine, 1 the input is wrong or something is missing, 2 wrong usage, 3 "
      "warnings "
      "or 4 errors found (doctor, env check, logs); `launch` returns its job's.\n"
      "`diapason COMMAND --help` tells more about each.",
      [&run](CommandLine* app) {
        AddAsk(app, &run);
        AddPolicy(app, &run);
        AddJournal(app, &run);
        AddBackends(app, &run);
        AddLaunch(app, &run);
        AddSimulate(app, &run);
        AddBench(app, &run);
        AddSweep(app, &run);
        AddWorker(app, &run);
        AddData(app, &run);
        AddTrain(app, &run);
        AddPredict(app, &run);
        AddPlan(app, &run);
        AddEvaluate(app, &run);
        AddKnobs(app, &run);
        AddEnv(app, &run);
        AddDoctor(app, &run);
        AddLogs(app, &run);
        AddWatch(app, &run);
        AddProxy(app, &run);
        AddSettings(app, &run);
      });
  if (answered >= 0) return answered;
  const int status = run ? run() : kExitUsage;
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
