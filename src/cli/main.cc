#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/text.h"
#include "base/version.h"
#include "cli/command.h"

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
  CLI::App app{
      "diapason: a tuning fork for GPU collectives.\n"
      "Tells NCCL and RCCL, through their own plugin interface, which algorithm, protocol "
      "and channel count to run, from a policy a person can read.",
      "diapason"};
  app.set_version_flag("--version", std::string("diapason ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 fine, 1 the input is wrong or something is missing, 2 wrong usage; `launch` "
      "returns its job's.\n"
      "`diapason COMMAND --help` tells more about each.");
  Run run;
  AddAsk(&app, &run);
  AddPolicy(&app, &run);
  AddJournal(&app, &run);
  AddBackends(&app, &run);
  AddLaunch(&app, &run);
  AddSimulate(&app, &run);
  AddBench(&app, &run);
  AddSweep(&app, &run);
  AddWorker(&app, &run);
  AddData(&app, &run);
  AddTrain(&app, &run);
  AddPredict(&app, &run);
  AddPlan(&app, &run);
  AddEvaluate(&app, &run);
  AddSettings(&app, &run);
  if (argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> commands;
    bool known = false;
    for (const CLI::App* command : app.get_subcommands({})) {
      known = known || command->get_name() == argv[1];
      // Those without a group are not for people.
      if (!command->get_group().empty()) commands.push_back(command->get_name());
    }
    if (!known) {
      (void)Fail(Invalid(Format("unknown command '%s'", argv[1]) + Suggestion(argv[1], commands)));
      return kExitUsage;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version come this way too, with status 0.
    return app.exit(error) == 0 ? kExitFine : kExitUsage;
  }
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
