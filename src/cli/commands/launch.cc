#include <memory>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"
#include "launch/local_launch.h"
#include "launch/rank_environment.h"

namespace diapason::cli {
namespace {

constexpr double kLongestGrace = 86400;
constexpr double kLongestTimeout = 1e8;  // about three years

}  // namespace

void AddLaunch(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<launch::LocalLaunchOptions>();
  CommandLine* command =
      parent->AddCommand("launch", "Start a program as several ranks on this host");
  command->Describe(
      "Sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT as torchrun does, and "
      "DIAPASON_SECRET_FILE to a file with a secret of this launch: groups of diapason admit only "
      "processes that know it. When a rank fails, the other ranks are terminated and the error "
      "message names the failed rank.");
  command->AddOption("-n,--ranks", options->ranks, "Number of ranks to start")
      ->Required()
      ->Check(Range(1, launch::kMostLocalRanks));
  command
      ->AddOption("--nodes", options->nodes,
                  "Number of hosts of the job, each with --ranks ranks: start it on each of them, "
                  "with the same --master and --port, and DIAPASON_SECRET_FILE set")
      ->Check(Range(1, launch::kMostNodes));
  command
      ->AddOption("--node-rank", options->node_rank,
                  "Which of the hosts this is, from 0; ranks are numbered in this order")
      ->Check(Range(0, launch::kMostNodes - 1));
  command
      ->AddOption("--master", options->master,
                  "MASTER_ADDR of a job on several hosts: the host with --node-rank 0; otherwise "
                  "that of the environment")
      ->TypeName("HOST");
  command
      ->AddOption("--port", options->port,
                  "MASTER_PORT of the job; otherwise that of the environment, or a free port")
      ->Check(Range(1, 65535));
  command->AddFlag("-p,--prefix", options->prefix,
                   "Prefix every line of the ranks' output with \"[RANK] \"");
  command
      ->AddOption("--log-dir", options->log_dir,
                  "Write the ranks' output to DIR/rank-N.out and .err; with --prefix also print it")
      ->TypeName("DIR");
  command->AddOption("--env", options->assignments, "Environment variable to set for all ranks")
      ->TypeName("NAME=VALUE")
      ->OneEach()
      ->Check(
          ValueRule{[](std::string& text) { return launch::CheckAssignment(text).message(); }, ""});
  command->AddTime("--grace", options->grace,
                   "Time that ranks have to end after SIGTERM before they are killed", 0,
                   kLongestGrace);
  command->AddTime("--timeout", options->timeout,
                   "Time after which the whole job is terminated; 0 means never", 0,
                   kLongestTimeout);
  command->TakeCommand();
  command->Describe(
      "The exit status is that of the first rank that failed, or 128 + N if signal N killed it.");
  command->Example("diapason launch -n 4 -- ./train --epochs 3", "Run a program on four ranks");
  command->Example("diapason launch -n 2 -p --env NCCL_DEBUG=INFO -- python3 train.py",
                   "Print the rank before every line of output");
  command->Example(
      "diapason launch -n 8 --nodes 2 --node-rank 1 --master node0 --port 29500 -- ./train",
      "Start this host's eight ranks of a job on two hosts");
  command->ExitStatus(kExitFine, "all ranks succeeded");
  command->ExitStatus(kExitFailed,
                      "the job could not be set up, or its output could not be written");
  command->ExitStatus(124, "the time of --timeout has passed");
  command->ExitStatus(126, "the command is not executable");
  command->ExitStatus(127, "the command was not found");
  command->SeeAlso({"bench"});
  command->Callback([command, options, run] {
    options->command = command->CommandAfterDashes("diapason launch -n 4 --");
    if (options->command.empty()) {
      throw UsageError{"", "no command given; usage: diapason launch -n 4 -- COMMAND ARGUMENTS..."};
    }
    if (options->node_rank >= options->nodes) {
      throw UsageError{"", Format("--node-rank {} does not exist among {}", options->node_rank,
                                  Count(static_cast<size_t>(options->nodes), "host"))};
    }
    *run = [options] { return launch::LaunchLocally(*options, Warn); };
  });
}

}  // namespace diapason::cli
