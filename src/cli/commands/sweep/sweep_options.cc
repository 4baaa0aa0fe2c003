#include "cli/commands/sweep/sweep_options.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/host_name.h"
#include "base/settings.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "comm/backend_facts.h"

namespace diapason::cli {
namespace {

using launch::Launcher;

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  if (text == "all" || text.empty()) return words;
  for (const std::string_view word : Split(text, ',')) words.emplace_back(Trim(word));
  return words;
}

// "default,1,2,8:64": numbers, "default" for 0, and doubling ranges.
Result<std::vector<int64_t>> Numbers(const std::string& text, const char* what, int64_t most) {
  std::vector<int64_t> numbers;
  for (const std::string_view word : Split(text, ',')) {
    if (Trim(word) == "default") {
      numbers.push_back(0);
      continue;
    }
    const Result<std::vector<uint64_t>> range = ParseSizes(Trim(word));
    if (!range.ok()) return range.status().WithContext(what);
    for (const uint64_t number : range.value()) {
      if (number == 0 || number > static_cast<uint64_t>(most)) {
        return Invalid(Format("{}: {} is out of range (1 to {})", what, number, most));
      }
      numbers.push_back(static_cast<int64_t>(number));
    }
  }
  return numbers;
}

// "1,2,4", "1..4" or "1-4".
Result<std::vector<int>> NodeCounts(const std::string& text) {
  std::vector<int> counts;
  for (const std::string_view word : Split(text, ',')) {
    const size_t dots = word.find("..");
    const size_t dash = word.find('-');
    const size_t mark = std::min(dots, dash);
    uint64_t first = 0;
    uint64_t last = 0;
    bool good = ParseUnsigned(Trim(word.substr(0, mark)), &first);
    if (mark == std::string_view::npos) {
      last = first;
    } else {
      good = good && ParseUnsigned(Trim(word.substr(mark + (dots == mark ? 2 : 1))), &last);
    }
    if (!good || first == 0 || last < first || last > 65536) {
      return Invalid("--nodes '" + text + "' is not a list such as 1,2,4 or 1..4");
    }
    for (uint64_t count = first; count <= last; ++count) counts.push_back(static_cast<int>(count));
  }
  return counts;
}

}  // namespace

search::MeasurerRequest SweepOptions::Request() const {
  search::MeasurerRequest request;
  request.ranks = ranks;
  request.launcher = launcher;
  request.launch_each = launch_each;
  request.replay = replay;
  if (runner == "nccl-tests") request.tests_folder = folder;
  request.operations = plan.operations;
  request.sizes = plan.sizes;
  // A launcher that stays queued is not waited for longer than the whole sweep may take.
  if (budget > 0) request.start_limit = std::clamp(budget, 10.0, 600.0);
  return request;
}

Status SweepOptions::Read() {
  RETURN_IF_ERROR(ReadPlan());
  RETURN_IF_ERROR(ReadSearch());
  RETURN_IF_ERROR(ReadLauncher());
  if (runner == "nccl-tests" && folder.empty()) {
    return Invalid("--runner nccl-tests needs --bin DIR, the folder of its binaries");
  }
  if (!replay.empty()) store.clear();
  const Result<std::vector<std::string>> own = OwnArguments();
  if (own.ok()) command_line = Join(own.value(), " ");
  return {};
}

Status SweepOptions::ReadPlan() {
  for (const std::string& name : collectives) {
    ASSIGN_OR_RETURN(const Operation operation, measure::ParseMeasured(name));
    plan.operations.push_back(operation);
  }
  const Result<std::vector<uint64_t>> parsed_sizes = ParseSizes(sizes);
  if (!parsed_sizes.ok()) return parsed_sizes.status().WithContext("--sizes");
  plan.sizes = parsed_sizes.value();
  ASSIGN_OR_RETURN(plan.type, ParseDataType(type));
  ASSIGN_OR_RETURN(plan.reduce, ParseReduceOp(reduce));
  plan.in_place = in_place;
  plan.algorithms = Words(algorithms);
  plan.protocols = Words(protocols);
  ASSIGN_OR_RETURN(const std::vector<int64_t> channel_numbers,
                   Numbers(channels, "--channels", 1024));
  plan.channels.assign(channel_numbers.begin(), channel_numbers.end());
  ASSIGN_OR_RETURN(plan.segments, Numbers(segments, "--segments", int64_t{1} << 30));
  for (const std::string& environment : environments) {
    const Result<std::vector<std::pair<std::string, std::string>>> assignments =
        launch::ParseAssignments(environment);
    if (!assignments.ok()) return assignments.status().WithContext("--env");
    std::vector<std::string> parts;
    for (const auto& [name, value] : assignments.value()) {
      parts.push_back(name);
      parts.back().append("=").append(value);
    }
    std::sort(parts.begin(), parts.end());
    plan.environments.push_back(Join(parts, " "));
  }
  return {};
}

Status SweepOptions::ReadSearch() {
  if (retry_failed && !resume) return Invalid("--retry-failed needs --resume");
  adaptive = search_name == "adaptive";
  search.seed = ranks.seed;
  search.tight = tight;
  if (budget > 0) search.seconds = budget;
  if (launch_each) {
    search.by_configuration = true;
    search.visit = search.most_samples;
  }
  if (sample_text.empty()) return {};
  uint64_t number = 0;
  char* end = nullptr;
  const double percent = std::strtod(sample_text.c_str(), &end);
  if (std::string(end) == "%" && percent > 0 && percent <= 100) {
    sample_share = percent / 100;
  } else if (ParseUnsigned(sample_text, &number) && number > 0) {
    search.samples = static_cast<int64_t>(number);
  } else {
    return Invalid("--samples '" + sample_text + "' is not a number such as 1000 or 15%");
  }
  return {};
}

Status SweepOptions::ReadLauncher() {
  ASSIGN_OR_RETURN(launcher.kind, launch::ParseLauncher(launcher_name));
  launcher.host_file = host_file;
  launcher.as_root = ::geteuid() == 0;
  for (const std::string_view word : Split(launcher_arguments, ' ')) {
    if (!word.empty()) launcher.extra.emplace_back(word);
  }
  ASSIGN_OR_RETURN(launcher.self, OwnProgram());
  ASSIGN_OR_RETURN(nodes, NodeCounts(node_text));
  if (launcher.kind == Launcher::Kind::kLocal && replay.empty() &&
      !comm::FactsOfBackend(measure::BackendOf(ranks)).simulated &&
      (nodes.size() > 1 || nodes[0] > 1)) {
    return Invalid("several nodes need --launcher mpirun or srun");
  }
  if (host_file.empty()) return {};
  ASSIGN_OR_RETURN(const std::vector<std::string> hosts, launch::ReadHostFile(host_file));
  launcher.first_host = launch::HostOfFirstRank(hosts, HostName(), launch::OwnAddresses());
  const int most = *std::max_element(nodes.begin(), nodes.end());
  if (static_cast<int>(hosts.size()) < most) {
    return Invalid(Format("--nodes asks for {}, '{}' has {} hosts", most, host_file, hosts.size()));
  }
  return {};
}

namespace {

void AddPlanOptions(CommandLine* command, SweepOptions* options) {
  command->Heading("Measurement plan");
  command->AddOption("--sizes", options->sizes, std::string("Message sizes: ") + kSizesText)
      ->TypeName("SIZES")
      ->Check(ReadBy(ParseSizes))
      ->ShowDefault();
  command
      ->AddOption("--algorithms", options->algorithms,
                  "Algorithms to measure: all, or a list such as ring,tree")
      ->TypeName("NAMES")
      ->ShowDefault();
  command
      ->AddOption("--protocols", options->protocols,
                  "Protocols to measure: all, or a list such as ll,simple")
      ->TypeName("NAMES")
      ->ShowDefault();
  command
      ->AddOption("--channels", options->channels,
                  "Channel counts to measure: default (the library's own number), numbers and "
                  "ranges, such as default,1:16")
      ->TypeName("LIST")
      ->ShowDefault();
  command->AddOption("--segments", options->segments, "Segment sizes to measure, for Open MPI")
      ->TypeName("SIZES")
      ->ShowDefault();
  command
      ->AddOption(
          "--env", options->environments,
          "Environment to measure in addition, such as \"A=1 B=2\"; needs a launch of its own")
      ->TypeName("ASSIGNMENTS")
      ->OneEach();
  command->AddOption("-d,--datatype", options->type, "Data type: " + Join(DataTypeWords(), ", "))
      ->TypeName("NAME")
      ->Words(DataTypeWords())
      ->Check(ReadBy(ParseDataType))
      ->ShowDefault();
  command
      ->AddOption("-o,--op", options->reduce,
                  "Reduction: sum, prod, min, max or avg (the short name is that of nccl-tests)")
      ->TypeName("NAME")
      ->Words({"sum", "prod", "min", "max", "avg"})
      ->ShowDefault();
  command->AddFlag("--in-place", options->in_place, "Measure in place instead of out of place");
}

void AddLaunchOptions(CommandLine* command, SweepOptions* options) {
  command->AddOption("--nodes", options->node_text, "Numbers of nodes to measure: 1,2,4 or 1..4")
      ->TypeName("LIST")
      ->ShowDefault();
  command
      ->AddOption("--launcher", options->launcher_name,
                  "Launcher for the ranks: local, mpirun or srun")
      ->TypeName("NAME")
      ->Words({"local", "mpirun", "srun"})
      ->ShowDefault();
  command->AddOption("--hostfile", options->host_file, "mpirun host file")->TypeName("FILE");
  command->AddOption("--launcher-args", options->launcher_arguments,
                     "Further arguments for mpirun or srun, separated by blanks");
  command
      ->AddOption("--runner", options->runner,
                  "Measurement program: builtin, or nccl-tests to run its binaries with a launch "
                  "per configuration")
      ->TypeName("NAME")
      ->Check(OneOf({"builtin", "nccl-tests"}))
      ->ShowDefault();
  command->AddOption("--bin", options->folder, "Folder of the nccl-tests or rccl-tests binaries")
      ->TypeName("DIR");
  command->AddFlag("--launch-each", options->launch_each,
                   "Start the ranks again for every change of configuration, as if only the "
                   "environment could select it");
}

void AddSearchOptions(CommandLine* command, SweepOptions* options) {
  command->Heading("Search");
  command
      ->AddOption("--search", options->search_name,
                  "Search strategy. exhaustive: the same number of samples for all; adaptive: more "
                  "samples for the best candidates")
      ->TypeName("NAME")
      ->Check(OneOf({"exhaustive", "adaptive"}))
      ->ShowDefault();
  command->AddTime("--budget", options->budget, "Time limit for the whole sweep", 0, 1e8);
  command
      ->AddOption(
          "--samples", options->sample_text,
          "Maximum number of samples, or a share of those of an exhaustive sweep, such as 15%")
      ->TypeName("N|SHARE");
  command
      ->AddOption("--least", options->search.least_samples,
                  "Minimum number of samples of each configuration before it can be settled")
      ->Check(Range(1, 100000))
      ->ShowDefault();
  command
      ->AddOption("--most", options->search.most_samples,
                  "Maximum number of samples of each configuration")
      ->Check(Range(1, 100000))
      ->ShowDefault();
  command->AddShare(
      "--tight", options->tight,
      "Settle a configuration when half the 95 % interval of its median is below this share",
      0.0001, 1);
  command->AddOption("--replay", options->replay, "Store to search in instead of measuring")
      ->TypeName("STORE");
}

}  // namespace

void AddSweepOptions(CommandLine* command, SweepOptions* options) {
  command
      ->AddOption("COLLECTIVE", options->collectives,
                  "Collectives to measure: " + Join(MeasuredCollectives(), ", "))
      ->Words(MeasuredCollectives())
      ->Check(ReadBy(measure::ParseMeasured))
      ->ShowDefault();
  AddPlanOptions(command, options);
  options->ranks.limit = 20;
  AddRankOptions(command, &options->ranks);
  AddLaunchOptions(command, options);
  AddSearchOptions(command, options);
  command->Heading("Output");
  command->AddOption("--store", options->store, "Store to write every sample to")
      ->TypeName("STORE")
      ->ShowDefault();
  command->AddFlag("--resume", options->resume, "Continue an interrupted sweep of this plan");
  command->AddFlag("--retry-failed", options->retry_failed,
                   "With --resume: also retry configurations that hung, crashed, computed wrong "
                   "results or took the sweep down");
  command->AddFlag("--dry-run", options->dry_run,
                   "Print the plan and an estimate of its time, without measuring");
  command->AddJson(options->json);
  command->AddFormat();
  command->AddQuiet(options->quiet);
  command->Describe(
      "A configuration that hangs, crashes or computes wrong results is recorded as failed; the "
      "ranks are started again and the sweep continues. Ctrl-C leaves a usable store.");
  command->Example("diapason sweep allreduce -g 4 --sizes 1K:1M:x8",
                   "Measure every algorithm and protocol, into diapason.db");
  command->Example("diapason sweep allreduce --search adaptive --budget 5m",
                   "Measure for five minutes, with most samples where they matter most");
  command->Example("diapason data show diapason.db", "Show the results");
  command->ExitStatus(kExitInterrupted, "interrupted by Ctrl-C; `--resume` continues the sweep");
  command->SeeAlso({"bench", "data-show", "plan"});
}

}  // namespace diapason::cli
