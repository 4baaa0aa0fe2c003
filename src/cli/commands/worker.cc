#include <cstdio>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/ranks.h"
#include "measure/job_measurer.h"

namespace diapason::cli {
namespace {

struct WorkerOptions {
  RankOptions ranks;
  bool no_choice = false;
};

// Rank 0 reads trials from standard input and answers on standard output until the input ends.
int Work(const WorkerOptions& options) {
  return OnEveryRank(options.ranks, !options.no_choice, [&options](Group* group) {
    const auto input = []() -> Result<std::string> {
      std::string line;
      if (!std::getline(std::cin, line)) return NotFound("no more trials");
      return line;
    };
    const auto output = [](const std::string& line) -> Status {
      if (std::printf("%s\n", line.c_str()) < 0 || std::fflush(stdout) != 0) {
        return IoError("cannot write to standard output");
      }
      return {};
    };
    const Status served = measure::ServeTrials(group, ClusterOf(options.ranks), input, output);
    return served.ok() ? kExitFine : Fail(served);
  });
}

}  // namespace

void AddWorker(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<WorkerOptions>();
  // Internal command: `sweep` starts its ranks as workers.
  CommandLine* command =
      parent->AddCommand("worker", "Run one rank that measures the trials it receives");
  command->Hide();
  AddRankOptions(command, &options->ranks);
  command->AddFlag("--no-choice", options->no_choice, "Never load the diapason plugin");
  command->Callback([options, run] { *run = [options] { return Work(*options); }; });
}

}  // namespace diapason::cli
