#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/commands/ranks.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "comm/backend_facts.h"
#include "diapason/comm.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

void PrintJson(const std::vector<BackendInfo>& backends, const std::string& automatic) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BackendInfo& info : backends) {
    list.push_back({{"name", info.name},
                    {"usable", info.usable},
                    {"version", info.version},
                    {"devices", info.devices},
                    {"reason", info.reason}});
  }
  const nlohmann::ordered_json whole{{"backends", list}, {"auto", automatic}};
  PrintOut("{}\n", JsonText(whole));
}

void PrintTable(const std::vector<BackendInfo>& backends, const std::string& automatic) {
  report::Table table({"backend", "usable", "version", "devices, or why not"});
  for (const BackendInfo& info : backends) {
    table.Add({info.name, info.usable ? "yes" : "no", info.version.empty() ? "-" : info.version,
               info.usable ? info.devices : info.reason});
  }
  PrintOut("{}\n", table.Text());
  if (automatic.empty()) {
    PrintOut("auto finds no backend that works on this host.\n");
  } else {
    PrintOut("auto selects {} on this host, if it works on every rank of the job.\n", automatic);
  }
}

}  // namespace

void AddBackends(CommandLine* parent, CommandAction* run) {
  auto json = std::make_shared<bool>(false);
  CommandLine* command = parent->AddCommand(
      "backends", "List the backends that can run collectives on this host, and why others cannot");
  command->AddJson(*json);
  command->AddFormat();
  command->Example("diapason backends", "Show the version and the devices of each backend");
  command->ExitStatus(kExitFailed, "only the simulated cluster works on this host");
  command->SeeAlso({"doctor", "bench"});
  command->Callback([json, run] {
    *run = [json] {
      const Result<host::JobLibrary> job = UseJobLibrary({});
      if (job.ok()) SayJobLibrary(job.value());
      const std::vector<BackendInfo> backends = Backends();
      std::string automatic;
      for (const BackendInfo& info : backends) {
        const bool real = !comm::FactsOfBackend(info.name).simulated;
        if (automatic.empty() && info.usable && real) automatic = info.name;
      }
      if (*json) {
        PrintJson(backends, automatic);
      } else {
        PrintTable(backends, automatic);
      }
      return automatic.empty() ? kExitFailed : kExitFine;
    };
  });
}

}  // namespace diapason::cli
