#include "cli/commands/watch/watch.h"

#include <memory>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"
#include "watch/http_server.h"

namespace diapason::cli {
namespace {

constexpr double kShortestInterval = 0.05;
constexpr double kLongestInterval = 3600;

}  // namespace

void AddWatch(CommandLine* parent, CommandAction* run) {
  auto asked = std::make_shared<WatchAsked>();
  CommandLine* command = parent->AddCommand(
      "watch",
      "Watch running processes: CPU of NCCL's threads, memory, network, operations per second");
  command->AddOption("PID", asked->pids, "Processes to watch; with several, one line for each")
      ->Check(Range(1, 4194304));
  command->AddFlag("--children", asked->children,
                   "Also watch all processes that they started (torchrun, mpirun)");
  command->AddFlag("--job", asked->job,
                   "Watch all ranks of the job that these processes belong to on this host; "
                   "without PID, of the only job");
  command->AddTime("--interval", asked->interval_s, "Time between samples", kShortestInterval,
                   kLongestInterval);
  command->AddOption("--count", asked->count, "Number of samples after which to stop")
      ->Check(Range(1, 1000000000))
      ->TypeName("N");
  command->AddOption("--journal", asked->journals, "Journals of the processes, in the same order")
      ->TypeName("FILE")
      ->OneEach()
      ->Default("DIAPASON_JOURNAL of each process");
  command
      ->AddOption("--baseline", asked->baseline,
                  "Baseline file to compare with, written by --save-baseline")
      ->TypeName("FILE");
  command
      ->AddOption("--save-baseline", asked->save_baseline,
                  "File to write the median and noise of every metric to at the end")
      ->TypeName("FILE");
  command
      ->AddOption("--prometheus", asked->prometheus,
                  "Export metrics for Prometheus: a file that is rewritten with each sample, or a "
                  "port that serves /metrics (on this host; ADDRESS:PORT for others)")
      ->TypeName("FILE|PORT");
  command->AddTime(
      "--profile", asked->profile_s,
      "Time for which to profile the processes with perf, to show where they spend CPU time", 0.1,
      600);
  command->AddJson(asked->json, "Print JSON, one line for each sample");
  command->AddQuiet(asked->quiet, "Do not print the address of the metrics on standard error");
  command->Example("diapason watch 4711", "Watch one rank until Ctrl-C");
  command->Example("diapason watch --children 4711 --count 10 --interval 2s",
                   "Watch all processes that torchrun has started");
  command->Example("diapason watch --job",
                   "Watch all ranks of the job, and name the one that the "
                   "others wait for");
  command->ExitStatus(kExitWarnings,
                      "a metric is worse than the baseline, or ranks wait for one that is behind, "
                      "stopped or gone");
  command->SeeAlso({"proxy-dump", "logs", "doctor"});
  command->Callback([asked, run] {
    if (const Status port = watch::MetricsServer::CheckPort(asked->prometheus); !port.ok()) {
      throw UsageError{"--prometheus", port.message()};
    }
    if (asked->pids.empty() && !asked->job) {
      throw UsageError{"", "give a PID, or --job for the job on this host"};
    }
    *run = [asked] { return asked->profile_s > 0 ? RunProfile(*asked) : RunWatch(*asked); };
  });
}

}  // namespace diapason::cli
