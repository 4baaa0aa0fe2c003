#include "cli/commands/ranks.h"

#include "base/environment.h"
#include "base/text.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "comm/backend_facts.h"
#include "comm/backends/sim/cluster.h"
#include "comm/launch_info.h"
#include "launch/local_launch.h"

namespace diapason::cli {

ValueRule ClusterName() {
  const auto wrong = [](std::string& text) -> std::string {
    if (text.find_first_of("/.") != std::string::npos) return "";
    const Result<std::string_view> shipped = comm::sim::ShippedText(text);
    return shipped.ok() ? "" : shipped.status().message();
  };
  return {wrong, "", comm::sim::ClusterNames()};
}

void AddRankOptions(CommandLine* command, RankOptions* options, bool all) {
  std::vector<std::string> backends = comm::BackendNames();
  backends.insert(backends.begin(), "auto");
  if (all) backends.emplace_back("all");
  command->Heading("Ranks");
  command
      ->AddOption(
          "-g,--ranks", options->ranks,
          "Number of ranks to start on this host; ignored if a launcher started this command")
      ->Check(Range(1, launch::kMostLocalRanks))
      ->Default("one per GPU, else 2; 4 with --backend sim");
  command->AddOption("--backend", options->backend, "Backend to run on: " + Join(backends, ", "))
      ->TypeName("NAME")
      ->Check(OneOf(backends))
      ->ShowDefault();
  command
      ->AddOption("--cluster", options->cluster, "Simulated cluster to run on, for --backend sim")
      ->TypeName("NAME")
      ->Check(ClusterName());
  Option* limit = command->AddTime("--limit", options->limit,
                                   "Time after which a wait counts as a hang", 0.1, 604800.0);
  if (options->limit <= 0) limit->Default("DIAPASON_TIMEOUT, else 60s");
  command->AddOption("--seed", options->seed, "Seed for the random number generator")
      ->ShowDefault();
}

namespace {

// Only rank 0 prints JSON.
void ExpectNoJsonOfOthers() {
  if (!IsLaunched()) return;
  const Result<comm::LaunchInfo> launch = comm::FindLaunch({}, ProcessEnvironment());
  if (launch.ok() && launch.value().rank != 0) ExpectJson(false);
}

}  // namespace

Result<int> OnEveryRank(const RankOptions& options, bool choose, const RankBody& body) {
  ExpectNoJsonOfOthers();
  return measure::RunOnEveryRank(options, choose, body);
}

Result<int> MeasureWithRanks(
    const RankOptions& options, bool choose,
    const std::function<Result<int>(measure::RankMeasurer* measurer)>& body) {
  ExpectNoJsonOfOthers();
  return measure::LeadRanks(options, choose, body);
}

}  // namespace diapason::cli
