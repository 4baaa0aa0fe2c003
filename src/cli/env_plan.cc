#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "advise/host/libraries.h"
#include "advise/plan/plan.h"
#include "advise/plan/render.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/json_text.h"
#include "cli/knobs_options.h"
#include "cli/read_by.h"
#include "cli/words.h"
#include "domain/library_version.h"

namespace diapason::cli {
namespace {

using advise::Plan;
using advise::PlanFormat;
using nlohmann::ordered_json;

constexpr int kMostRanks = 4096;

struct Options {
  std::string goal;
  std::string library;
  std::string version;
  std::string format = "text";
  std::string root = "/";
  int ranks = 0;
  bool json = false;
};

// What is asked for, else what is there: the library the loader would take, else the one that
// belongs to the GPUs.
Result<advise::PlanRequest> Request(const Options& options, const advise::Tree& tree,
                                    const advise::Machine& machine) {
  advise::PlanRequest request;
  const Result<advise::Goal> goal = advise::ParseGoal(options.goal);
  if (!goal.ok()) return goal.status();
  request.goal = goal.value();
  request.ranks = options.ranks;
  const std::vector<advise::LibraryFile> files = advise::FindLibraries(tree, ProcessEnvironment());
  if (!options.library.empty()) {
    const Result<Library> library = ParseNcclOrRccl(options.library);
    if (!library.ok()) return library.status();
    request.library = library.value();
  } else if (!machine.gpus.empty()) {
    const bool amd = machine.gpus.front().vendor == advise::Vendor::kAmd;
    request.library = amd ? Library::kRccl : Library::kNccl;
  } else if (!files.empty()) {
    request.library = files.front().library;
  }
  if (!options.version.empty()) {
    const Result<int> version = ParseWholeVersion(options.version);
    if (!version.ok()) return version.status();
    request.version = version.value();
    return request;
  }
  const std::string loaded = WouldLoad(files, request.library, tree, ProcessEnvironment());
  for (const advise::LibraryFile& file : files) {
    if (file.library != request.library || file.version == 0) continue;
    const bool taken = file.path == loaded || file.real_path == loaded;
    if (taken || request.version == 0) request.version = file.version;
  }
  return request;
}

void PrintJson(const Plan& plan) {
  ordered_json json;
  json["goal"] = advise::GoalName(plan.request.goal);
  json["library"] = LibraryName(plan.request.library);
  json["version"] = LibraryVersionText(plan.request.version);
  json["ranks_per_node"] = plan.request.ranks;
  json["settings"] = ordered_json::array();
  for (const advise::PlannedSetting& setting : plan.settings) {
    json["settings"].push_back({{"name", setting.name},
                                {"value", setting.value},
                                {"reason", setting.reason},
                                {"trade", setting.trade}});
  }
  json["left_out"] = ordered_json::array();
  for (const advise::LeftOutSetting& setting : plan.left_out) {
    json["left_out"].push_back({{"name", setting.name},
                                {"value", setting.value},
                                {"why", setting.why},
                                {"is_default", setting.is_default}});
  }
  json["places"] = ordered_json::array();
  for (const advise::RankPlace& place : plan.places) {
    json["places"].push_back(
        {{"rank", place.rank},
         {"gpu", place.gpu < 0 ? ordered_json(nullptr) : ordered_json(place.gpu)},
         {"numa_node", place.node < 0 ? ordered_json(nullptr) : ordered_json(place.node)},
         {"cpus", advise::CpuListText(place.cpus)},
         {"numactl", advise::NumactlPrefix(place)},
         {"taskset", advise::TasksetPrefix(place)}});
  }
  json["wrapper"] = plan.places.empty() ? "" : advise::WrapperLine(plan.places);
  json["place_notes"] = plan.place_notes;
  json["docker_options"] = plan.docker_options;
  json["steps"] = plan.steps;
  json["notes"] = ordered_json::array();
  for (const advise::PlanNote& note : plan.notes) {
    json["notes"].push_back({{"topic", note.topic}, {"text", note.text}});
  }
  std::printf("%s\n", JsonText(json).c_str());
}

int RunPlan(const Options& options) {
  const Result<PlanFormat> format = advise::ParsePlanFormat(options.json ? "json" : options.format);
  if (!format.ok()) return Fail(format.status());
  const advise::Tree tree(options.root);
  if (!tree.IsFolder("/")) {
    return Fail(NotFound("--root '" + options.root + "' is not a folder"));
  }
  const advise::Machine machine = advise::LookAtMachine(tree, ProcessEnvironment());
  const Result<advise::PlanRequest> request = Request(options, tree, machine);
  if (!request.ok()) return Fail(request.status());
  std::vector<int> cpus = machine.allowed_cpus;
  for (const advise::NumaNode& node : machine.numa) {
    for (const int cpu : advise::ParseCpuList(node.cpus)) cpus.push_back(cpu);
  }
  const Plan plan = advise::MakePlan(request.value(), machine, advise::ReadCores(tree, cpus),
                                     advise::Catalogue::BuiltIn());
  switch (format.value()) {
    case PlanFormat::kText:
      std::printf("%s", advise::PlanText(plan).c_str());
      break;
    case PlanFormat::kShell:
      std::printf("%s", advise::PlanShell(plan).c_str());
      break;
    case PlanFormat::kSlurm:
      std::printf("%s", advise::PlanSlurm(plan).c_str());
      break;
    case PlanFormat::kDocker:
      std::printf("%s", advise::PlanDocker(plan).c_str());
      break;
    case PlanFormat::kJson:
      PrintJson(plan);
      break;
  }
  return kExitFine;
}

}  // namespace

void AddEnvPlan(CommandLine* env, Run* run) {
  auto options = std::make_shared<Options>();
  CommandLine* command =
      env->AddCommand("plan", "Say what to set for a goal, on this machine and this library");
  command
      ->AddOption("--goal", options->goal,
                  "latency, throughput, cpu (little CPU time), balanced, or debug")
      ->TypeName("WORD")
      ->Words({"latency", "throughput", "cpu", "balanced", "debug"})
      ->Check(ReadBy(advise::ParseGoal))
      ->Required();
  command->AddOption("--library", options->library, "nccl or rccl")
      ->TypeName("NAME")
      ->Words(NcclOrRccl())
      ->Default("the one that belongs to the GPUs here");
  command->AddOption("--library-version", options->version, "Its version, such as 2.28.9")
      ->TypeName("VERSION")
      ->Default("that of the one found here");
  command->AddOption("--ranks-per-node", options->ranks, "Ranks on one host")
      ->Check(Range(1, kMostRanks))
      ->Default("as many as it has GPUs");
  command
      ->AddOption("--root", options->root,
                  "Look at the files below this folder instead; nothing is executed")
      ->TypeName("DIR");
  command->Heading("Output");
  command
      ->AddOption("--format", options->format,
                  "text, shell (to be sourced), slurm, docker, or json")
      ->TypeName("WORD")
      ->Words({"text", "shell", "slurm", "docker", "json"})
      ->Check(ReadBy(advise::ParsePlanFormat))
      ->ShowDefault();
  command->AddJson(options->json, "The same as --format json");
  command->Example("diapason env plan --goal latency", "What to set, and why");
  command->Example("diapason env plan --goal cpu --format shell > job.env", "For `source`");
  command->SeeAlso({"knobs"});
  command->Callback([options, run] {
    const Status right = CheckLibraryOptions(options->library, options->version);
    if (!right.ok()) throw UsageError{"", right.message()};
    *run = [options] { return RunPlan(*options); };
  });
}

}  // namespace diapason::cli
