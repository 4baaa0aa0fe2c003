#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/env/knobs_options.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "domain/library_version.h"
#include "env_plan/plan.h"
#include "env_plan/render.h"
#include "host/libraries.h"

namespace diapason::cli {
namespace {

using env_plan::EnvPlan;
using env_plan::PlanFormat;
using nlohmann::ordered_json;

constexpr int kMostRanks = 4096;

struct EnvPlanOptions {
  std::string goal;
  std::string library;
  std::string version;
  std::string format = "text";
  std::string root = "/";
  int ranks = 0;
  bool json = false;
};

// The requested library, else the one that the loader would load, else the one for the installed
// GPUs.
Result<env_plan::PlanRequest> Request(const EnvPlanOptions& options, const RootFs& tree,
                                      const host::Machine& machine) {
  env_plan::PlanRequest request;
  ASSIGN_OR_RETURN(const env_plan::PlanGoal goal, env_plan::ParseGoal(options.goal));
  request.goal = goal;
  request.ranks = options.ranks;
  std::vector<host::LibraryFile> files = host::FindLibraries(tree, ProcessEnvironment());
  if (!options.library.empty()) {
    ASSIGN_OR_RETURN(const Library library, ParseNcclOrRccl(options.library));
    request.library = library;
  } else if (!machine.gpus.empty()) {
    const bool amd = machine.gpus.front().vendor == host::Vendor::kAmd;
    request.library = amd ? Library::kRccl : Library::kNccl;
  } else if (!files.empty()) {
    request.library = files.front().library;
  }
  if (!options.version.empty()) {
    ASSIGN_OR_RETURN(const int version, ParseWholeVersion(options.version));
    request.version = version;
    return request;
  }
  request.version = VersionHere(tree, ProcessEnvironment(), request.library, std::move(files));
  return request;
}

void PrintJson(const EnvPlan& plan) {
  ordered_json json;
  json["goal"] = env_plan::GoalName(plan.request.goal);
  json["library"] = LibraryName(plan.request.library);
  json["version"] = LibraryVersionText(plan.request.version);
  json["ranks_per_node"] = plan.request.ranks;
  json["settings"] = ordered_json::array();
  for (const env_plan::PlannedSetting& setting : plan.settings) {
    json["settings"].push_back({{"name", setting.name},
                                {"value", setting.value},
                                {"reason", setting.reason},
                                {"trade", setting.trade}});
  }
  json["left_out"] = ordered_json::array();
  for (const env_plan::LeftOutSetting& setting : plan.left_out) {
    json["left_out"].push_back({{"name", setting.name},
                                {"value", setting.value},
                                {"why", setting.why},
                                {"is_default", setting.is_default}});
  }
  json["places"] = ordered_json::array();
  for (const env_plan::RankBinding& place : plan.places) {
    json["places"].push_back(
        {{"rank", place.rank},
         {"gpu", place.gpu < 0 ? ordered_json(nullptr) : ordered_json(place.gpu)},
         {"numa_node", place.node < 0 ? ordered_json(nullptr) : ordered_json(place.node)},
         {"cpus", CpuListText(place.cpus)},
         {"numactl", env_plan::NumactlPrefix(place)},
         {"taskset", env_plan::TasksetPrefix(place)}});
  }
  json["wrapper"] = plan.places.empty() ? "" : env_plan::WrapperLine(plan.places);
  json["place_notes"] = plan.place_notes;
  json["docker_options"] = plan.docker_options;
  json["steps"] = plan.steps;
  json["notes"] = ordered_json::array();
  for (const env_plan::PlanNote& note : plan.notes) {
    json["notes"].push_back({{"topic", note.topic}, {"text", note.text}});
  }
  PrintOut("{}\n", JsonText(json));
}

Result<int> RunPlan(const EnvPlanOptions& options) {
  ASSIGN_OR_RETURN(const PlanFormat format,
                   env_plan::ParsePlanFormat(options.json ? "json" : options.format));
  const RootFs tree(options.root);
  if (!tree.IsFolder("/")) {
    return NotFound("--root '" + options.root + "' is not a folder");
  }
  const host::Machine machine = host::LookAtMachine(tree, ProcessEnvironment());
  ASSIGN_OR_RETURN(const env_plan::PlanRequest request, Request(options, tree, machine));
  std::vector<int> cpus = machine.allowed_cpus;
  for (const host::NumaNode& node : machine.numa) {
    for (const int cpu : ParseCpuList(node.cpus)) cpus.push_back(cpu);
  }
  const EnvPlan plan = env_plan::MakePlan(request, machine, env_plan::ReadCores(tree, cpus),
                                          knobs::Catalogue::BuiltIn());
  switch (format) {
    case PlanFormat::kText:
      PrintOut("{}", env_plan::PlanText(plan));
      break;
    case PlanFormat::kShell:
      PrintOut("{}", env_plan::PlanShell(plan));
      break;
    case PlanFormat::kSlurm:
      PrintOut("{}", env_plan::PlanSlurm(plan));
      break;
    case PlanFormat::kDocker:
      PrintOut("{}", env_plan::PlanDocker(plan));
      break;
    case PlanFormat::kJson:
      PrintJson(plan);
      break;
  }
  return kExitFine;
}

}  // namespace

void AddEnvPlan(CommandLine* env, CommandAction* run) {
  auto options = std::make_shared<EnvPlanOptions>();
  CommandLine* command =
      env->AddCommand("plan", "Recommend variables for a goal, for this machine and library");
  command
      ->AddOption(
          "--goal", options->goal,
          "Goal of the settings: latency, throughput, cpu (little CPU time), balanced, or debug")
      ->TypeName("WORD")
      ->Words({"latency", "throughput", "cpu", "balanced", "debug"})
      ->Check(ReadBy(env_plan::ParseGoal))
      ->Required();
  command->AddOption("--library", options->library, "Library to plan for: nccl or rccl")
      ->TypeName("NAME")
      ->Words(NcclOrRccl())
      ->Default("the library for the GPUs of this host");
  command
      ->AddOption("--library-version", options->version, "Version of the library, such as 2.28.9")
      ->TypeName("VERSION")
      ->Default("version of the library found on this host");
  command->AddOption("--ranks-per-node", options->ranks, "Number of ranks on one host")
      ->Check(Range(1, kMostRanks))
      ->Default("one per GPU");
  command
      ->AddOption(
          "--root", options->root,
          "Examine the files below this folder instead of this machine; nothing is executed")
      ->TypeName("DIR");
  command->Heading("Output");
  command
      ->AddOption("--format", options->format,
                  "Output format: text, shell (to be sourced), slurm, docker, or json")
      ->TypeName("WORD")
      ->Words({"text", "shell", "slurm", "docker", "json"})
      ->Check(ReadBy(env_plan::ParsePlanFormat))
      ->ShowDefault();
  command->AddJson(options->json, "The same as --format json");
  command->Example("diapason env plan --goal latency",
                   "Show the variables to set for low latency, and why");
  command->Example("diapason env plan --goal cpu --format shell > job.env",
                   "Write a file for `source`");
  command->SeeAlso({"knobs"});
  command->Callback([options, run] {
    const Status right = CheckLibraryOptions(options->library, options->version);
    if (!right.ok()) throw UsageError{"", right.message()};
    *run = [options] { return RunPlan(*options); };
  });
}

}  // namespace diapason::cli
