#include "cli/commands/watch/proxy.h"

#include <memory>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"

namespace diapason::cli {

void AddProxy(CommandLine* parent, CommandAction* run) {
  CommandLine* proxy =
      parent->AddCommand("proxy", "Look at the threads that move NCCL's data over networks");
  proxy->Example("diapason proxy dump 4711", "What the proxy of a rank waits for");
  proxy->RequireCommand();
  proxy->SeeAlso({"watch", "logs"});
  auto asked = std::make_shared<ProxyAsked>();
  CommandLine* command =
      proxy->AddCommand("dump", "Ask a process what its proxy threads wait for, and explain it");
  command->Describe(
      "The process must have been started with NCCL_PROXY_DUMP_SIGNAL; without a PID, dumps in a "
      "log are explained.");
  command->AddOption("PID", asked->pid, "The process")->Check(Range(1, 4194304));
  command
      ->AddOption("--from", asked->from,
                  "The log its standard output ends up in; without PID: read the dumps in it")
      ->TypeName("FILE");
  command->AddTime("--again", asked->again_s,
                   "Ask a second time so much later: tells what moves from what is stuck", 0, 600);
  command->AddTime("--timeout", asked->timeout_s, "Wait so long for each answer", 0.001, 600);
  command->AddFlag("--fill", asked->fill,
                   "Ask until the process's output buffer runs over; where output is not "
                   "line-buffered there is no other way");
  command->AddJson(asked->json);
  command->Example("diapason proxy dump 4711 --again 5s", "What moves, and what is stuck");
  command->Example("diapason proxy dump --from rank3.log", "Dumps that are in a log already");
  command->Judges();
  command->Callback([asked, run] {
    if (asked->pid == 0 && asked->from.empty()) {
      throw UsageError{"", "give a PID, or --from FILE to read dumps in a log"};
    }
    *run = [asked] { return RunProxyDump(*asked); };
  });
}

}  // namespace diapason::cli
