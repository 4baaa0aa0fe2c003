#include "cli/proxy.h"

#include <memory>

#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"

namespace diapason::cli {

void AddProxy(CommandLine* parent, Run* run) {
  struct Texts {
    std::string again;
    std::string timeout = "5s";
  };
  CommandLine* proxy =
      parent->AddCommand("proxy", "The threads that move NCCL's data over networks");
  proxy->RequireCommand();
  auto asked = std::make_shared<ProxyAsked>();
  auto texts = std::make_shared<Texts>();
  CommandLine* command = proxy->AddCommand(
      "dump",
      "Ask a process started with NCCL_PROXY_DUMP_SIGNAL what its proxy waits for, and explain it");
  command->AddOption("PID", asked->pid, "The process")->Check(Range(1, 4194304));
  command
      ->AddOption("--from", asked->from,
                  "The log its standard output ends up in; without PID: read the dumps in it")
      ->TypeName("FILE");
  command
      ->AddOption("--again", texts->again,
                  "Ask a second time so much later: tells what moves from what is stuck")
      ->TypeName("TIME");
  command->AddOption("--timeout", texts->timeout, "Wait so long for each answer (default 5s)")
      ->TypeName("TIME");
  command->AddFlag("--fill", asked->fill,
                   "Ask until the process's output buffer runs over; where output is not "
                   "line-buffered there is no other way");
  command->AddFlag("--json", asked->json, "Print JSON");
  command->Callback([asked, texts, run] {
    const auto seconds = [](const char* option, const std::string& text) {
      const Result<double> value = ParseSeconds(text);
      if (!value.ok()) throw UsageError{option, value.status().message()};
      if (value.value() > 600) {
        throw UsageError{option, "'" + text + "' is more than ten minutes"};
      }
      return value.value();
    };
    asked->timeout_s = seconds("--timeout", texts->timeout);
    if (!texts->again.empty()) asked->again_s = seconds("--again", texts->again);
    if (asked->pid == 0 && asked->from.empty()) {
      throw UsageError{"dump", "give a PID, or --from FILE to read dumps in a log"};
    }
    *run = [asked] { return RunProxyDump(*asked); };
  });
}

}  // namespace diapason::cli
