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
      "Watch running processes: CPU of NCCL's threads, memory, network, operations a second");
  command->AddOption("PID", asked->pids, "Processes; several are shown on a line each")
      ->Required()
      ->Check(Range(1, 4194304));
  command->AddFlag("--children", asked->children,
                   "And all processes they started (torchrun, mpirun)");
  command->AddTime("--interval", asked->interval_s, "The time between looks", kShortestInterval,
                   kLongestInterval);
  command->AddOption("--count", asked->count, "End after so many looks")
      ->Check(Range(1, 1000000000))
      ->TypeName("N");
  command->AddOption("--journal", asked->journals, "Journals of the processes, in their order")
      ->TypeName("FILE")
      ->OneEach()
      ->Default("their DIAPASON_JOURNAL");
  command->AddOption("--baseline", asked->baseline, "Compare with what --save-baseline wrote")
      ->TypeName("FILE");
  command
      ->AddOption("--save-baseline", asked->save_baseline,
                  "At the end write medians and noise of every metric")
      ->TypeName("FILE");
  command
      ->AddOption("--prometheus", asked->prometheus,
                  "Metrics for Prometheus: a file, written anew at each look, or a port (on this "
                  "host; ADDRESS:PORT for others) to serve /metrics at")
      ->TypeName("FILE|PORT");
  command->AddTime("--profile", asked->profile_s,
                   "Sample the processes with perf for so long, and show where the time went", 0.1,
                   600);
  command->AddJson(asked->json, "Print JSON, a line for each look");
  command->AddQuiet(asked->quiet, "No address of the metrics on standard error");
  command->Example("diapason watch 4711", "One rank, until Ctrl-C");
  command->Example("diapason watch --children 4711 --count 10 --interval 2s",
                   "All that torchrun has started");
  command->ExitStatus(kExitWarnings, "worse than the baseline");
  command->SeeAlso({"proxy-dump", "logs", "doctor"});
  command->Callback([asked, run] {
    if (const Status port = watch::MetricsServer::CheckPort(asked->prometheus); !port.ok()) {
      throw UsageError{"--prometheus", port.message()};
    }
    *run = [asked] { return asked->profile_s > 0 ? RunProfile(*asked) : RunWatch(*asked); };
  });
}

}  // namespace diapason::cli
