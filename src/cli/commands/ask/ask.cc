#include <cstdio>
#include <memory>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/ask/ask_plugin.h"
#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"
#include "cli/framework/output.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "domain/library_version.h"

namespace diapason::cli {
namespace {

Result<int> RunAsk(const AskOptions& options) {
  ASSIGN_OR_RETURN(const AskResult result, AskPlugin(options));
  for (const client::LogLine& line : result.log) {
    if (!options.json && (line.warning || options.verbose)) {
      WriteError(Format("plugin {}: {}\n", line.warning ? "warns" : "says", line.text));
    }
  }
  WriteOut((options.json ? AskJson(result) : AskText(result)));
  return result.refused ? kExitFailed : kExitFine;
}

}  // namespace

void AddAsk(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<AskOptions>();
  CommandLine* ask =
      parent->AddCommand("ask", "Show what the plugin would choose for given calls, and why");
  ask->Describe(
      "Loads the real plugin through the interface that NCCL uses, asks it about each call, and "
      "prints the answers with the reasons from the plugin's journal. Neither a GPU nor NCCL is "
      "needed.");
  ask->AddOption("--policy", options->policy, "Policy file to apply")
      ->TypeName("FILE")
      ->Default("the policy that the environment selects");
  ask->AddOption("--nodes", options->nodes, "Number of nodes of the communicator")
      ->Check(Range(int64_t{1}, int64_t{INT32_MAX}))
      ->Default(Format("{}, or that of --table", static_cast<int>(kAskNodes)));
  ask->AddOption("--ranks", options->ranks, "Number of ranks of the communicator")
      ->Check(Range(int64_t{1}, int64_t{INT32_MAX}))
      ->Default(Format("{}, or that of --table", static_cast<int>(kAskRanks)));
  ask->AddOption("--collective", options->collectives,
                 "Collectives to ask about: " + Join(TunedCollectives(), ", ") +
                     "; separate several by commas")
      ->Delimiter(',')
      ->TypeName("NAME")
      ->Words(TunedCollectives())
      ->Check(ReadBy([](const std::string& name) { return ParseCollective(Library::kNccl, name); }))
      ->ShowDefault();
  ask->AddOption("--sizes", options->sizes, std::string("Message sizes: ") + kSizesText)
      ->TypeName("SIZES")
      ->Check(ReadBy(ParseSizes))
      ->Default("1K:1G:x4, or the sizes of --table");
  ask->AddOption(
         "--table", options->table,
         "Recorded cost table: a journal with tables, or the output of `journal show --tables`")
      ->TypeName("FILE");
  ask->Heading("Library that loads the plugin");
  ask->AddOption("--library", options->library, "Library to act as: nccl or rccl")
      ->TypeName("NAME")
      ->Words(NcclOrRccl())
      ->Check(ReadBy(ParsePlayed))
      ->ShowDefault();
  ask->AddOption("--library-version", options->library_version,
                 "Version of the library to act as, such as 2.28.9")
      ->TypeName("VERSION")
      ->Check(ReadBy(ParseLibraryVersion))
      ->Default("unknown");
  ask->AddOption("--api", options->api, "Tuner API version to use, v1 to v7")
      ->TypeName("VERSION")
      ->Words({"v1", "v2", "v3", "v4", "v5", "v6", "v7"})
      ->Check(ReadBy(ParseApi))
      ->Default("the version that such a library uses");
  ask->AddOption("--pipe-ops", options->pipe_ops, "Value of numPipeOps in each call")
      ->ShowDefault();
  ask->AddOption("--reg-buff", options->reg_buff, "Value of regBuff in each call")
      ->TypeName("0|1")
      ->Check(Range(0, 1))
      ->ShowDefault();
  ask->AddFlag("--collnet", options->collnet,
               "Report CollNet as available, under tuner API v1 and v2");
  ask->AddFlag("--nvls", options->nvls, "Report NVLS as available, under tuner API v1 and v2");
  ask->AddOption("--plugin", options->plugin, "Plugin library to load")
      ->TypeName("FILE")
      ->Default("the plugin beside this tool");
  ask->Heading("Output");
  ask->AddFlag("-v,--verbose", options->verbose,
               "Print the plugin's whole log, not only its warnings");
  ask->AddJson(options->json);
  ask->AddFormat();
  ask->Example("diapason ask --policy my.conf --sizes 64K:16M:x4",
               "Show the choices of a policy for allreduce on one node with 8 ranks");
  ask->Example("diapason ask --nodes 2 --ranks 16 --collective allgather",
               "Show the choices of the environment's policy for allgather");
  ask->SeeAlso({"policy-show", "journal-show"});
  ask->Callback([options, run] { *run = [options] { return RunAsk(*options); }; });
}

}  // namespace diapason::cli
