#include "cli/watch.h"

#include <memory>

#include "advise/watch/http_server.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"

namespace diapason::cli {
namespace {

constexpr double kShortestInterval = 0.05;
constexpr double kLongestInterval = 3600;

// A time between two bounds, or a usage error.
double Seconds(const char* option, const std::string& text, double least, double most) {
  const Result<double> seconds = ParseSeconds(text);
  if (!seconds.ok()) throw UsageError{option, seconds.status().message()};
  if (seconds.value() < least || seconds.value() > most) {
    throw UsageError{option,
                     Format("'%s' is not from %g to %g seconds", text.c_str(), least, most)};
  }
  return seconds.value();
}

}  // namespace

void AddWatch(CommandLine* parent, Run* run) {
  struct Texts {
    std::string interval = "1s";
    std::string profile;
  };
  auto asked = std::make_shared<WatchAsked>();
  auto texts = std::make_shared<Texts>();
  CommandLine* command = parent->AddCommand(
      "watch",
      "Look at running processes: CPU of NCCL's threads, memory, network, operations a second");
  command->AddOption("PID", asked->pids, "Processes; several are shown on a line each")
      ->Required()
      ->Check(Range(1, 4194304));
  command->AddFlag("--children", asked->children,
                   "And all processes they started (torchrun, mpirun)");
  command->AddOption("--interval", texts->interval, "Time between looks (default 1s)")
      ->TypeName("TIME");
  command->AddOption("--count", asked->count, "End after so many looks")
      ->Check(Range(1, 1000000000))
      ->TypeName("N");
  command
      ->AddOption("--journal", asked->journals,
                  "Journals of the processes, in their order (default: their DIAPASON_JOURNAL)")
      ->TypeName("FILE")
      ->OneEach();
  command
      ->AddOption("--baseline", asked->baseline,
                  "Compare with what --save-baseline wrote; exit status 3 where it got worse")
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
  command
      ->AddOption("--profile", texts->profile,
                  "Sample the processes with perf for so long, and show where the time went")
      ->TypeName("TIME");
  command->AddFlag("--json", asked->json, "Print JSON, a line for each look");
  command->Callback([asked, texts, run] {
    asked->interval_s = Seconds("--interval", texts->interval, kShortestInterval, kLongestInterval);
    if (!texts->profile.empty()) {
      asked->profile_s = Seconds("--profile", texts->profile, 0.1, 600);
    }
    if (const Status port = advise::MetricsServer::CheckPort(asked->prometheus); !port.ok()) {
      throw UsageError{"--prometheus", port.message()};
    }
    *run = [asked] { return asked->profile_s > 0 ? RunProfile(*asked) : RunWatch(*asked); };
  });
}

}  // namespace diapason::cli
