#include "cli/commands/watch/proxy.h"

#include <memory>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"

namespace diapason::cli {

void AddProxy(CommandLine* parent, CommandAction* run) {
  CommandLine* proxy =
      parent->AddCommand("proxy", "Inspect the proxy threads that move NCCL's data over networks");
  proxy->Example("diapason proxy dump 4711", "Show what the proxy threads of a rank wait for");
  proxy->RequireCommand();
  proxy->SeeAlso({"watch", "logs"});
  auto asked = std::make_shared<ProxyAsked>();
  CommandLine* command = proxy->AddCommand(
      "dump", "Ask a process what its proxy threads wait for, and explain the answer");
  command->Describe(
      "The process must have been started with NCCL_PROXY_DUMP_SIGNAL; without a PID, the command "
      "explains the dumps in a log.");
  command->AddOption("PID", asked->pid, "Process to ask")->Check(Range(1, 4194304));
  command
      ->AddOption("--from", asked->from,
                  "Log that receives the standard output of the process; without PID, the log to "
                  "read dumps from")
      ->TypeName("FILE");
  command->AddTime(
      "--again", asked->again_s,
      "Ask a second time after this delay, to distinguish slow operations from stuck ones", 0, 600);
  command->AddTime("--timeout", asked->timeout_s, "Time to wait for each answer", 0.001, 600);
  command->AddFlag("--fill", asked->fill,
                   "Ask repeatedly until the output buffer of the process overflows; needed if its "
                   "output is not line-buffered");
  command->AddJson(asked->json);
  command->Example("diapason proxy dump 4711 --again 5s",
                   "Show which operations move and which are stuck");
  command->Example("diapason proxy dump --from rank3.log",
                   "Explain dumps that are in a log already");
  command->Judges();
  command->Callback([asked, run] {
    if (asked->pid == 0 && asked->from.empty()) {
      throw UsageError{"", "give a PID, or --from FILE to read dumps from a log"};
    }
    *run = [asked] { return RunProxyDump(*asked); };
  });
}

}  // namespace diapason::cli
