#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/own_files.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "cli/commands/doctor/doctor_report.h"
#include "cli/framework/ranks.h"
#include "doctor/goals.h"
#include "launch/program.h"
#include "plugin/client/plugin_client.h"

namespace diapason::cli {
namespace {

using doctor::TestResult;

constexpr size_t kMostOutput = size_t{4} << 20;
constexpr std::chrono::seconds kPatienceGpus{120};
constexpr std::chrono::seconds kPatienceCpus{30};
constexpr size_t kGoalRanks = 4;  // the goals are defined for four GPUs

// Standard output of the child process. Its exit status adds nothing to the output.
Result<std::string> RunBench(std::vector<std::string> arguments, std::chrono::seconds patience) {
  const Result<std::string> self = OwnProgram();
  if (!self.ok()) return self.status();
  arguments.insert(arguments.begin(), {self.value(), "bench"});
  const auto deadline = std::chrono::steady_clock::now() + patience;
  // The library's log would be printed on standard output, between the lines of the table.
  const Result<std::unique_ptr<launch::Program>> program =
      launch::Program::Start(arguments, {{"NCCL_DEBUG", ""}});
  if (!program.ok()) return program.status();
  Result<std::string> output = program.value()->ReadAll(kMostOutput, deadline);
  if (!output.ok()) return output.status();
  const Result<int> status = program.value()->Finish(deadline);
  if (!status.ok()) return status.status();
  if (output.value().empty() && status.value() != 0) {
    // Every rank prints the same error; the first line is enough.
    const std::string errors = program.value()->ErrorTail();
    const std::string first(Trim(errors.substr(0, errors.find('\n'))));
    return Unavailable(first.empty() ? Format("exit status %d", status.value()) : first);
  }
  return output;
}

void MeasureGpus(const host::Machine& machine, TestResult* test) {
  TemporaryFile goals;
  if (const Status made = goals.Create("goals", doctor::kGoals); !made.ok()) {
    test->trouble = made.message();
    return;
  }
  const bool amd = machine.gpus[0].vendor == host::Vendor::kAmd;
  test->shared = machine.gpus.size() == 1;
  const size_t ranks = test->shared ? 2 : std::min(machine.gpus.size(), kGoalRanks);
  const Result<std::string> output =
      RunBench({"--backend", amd ? "rccl" : "nccl", "-g", std::to_string(ranks), "--limit", "30",
                "--targets", goals.path()},
               kPatienceGpus);
  if (!output.ok()) {
    test->trouble = output.status().message();
    return;
  }
  test->goals = doctor::ParseGoals(output.value(), &test->headline);
  if (test->goals.empty()) test->trouble = "diapason bench printed no goals";
}

void MeasureCpus(TestResult* test) {
  const Result<std::string> output =
      RunBench({"all_reduce", "--backend", "gloo", "-g", "2", "-b", "10MB", "-e", "10MB", "-n", "5",
                "-w", "2", "--rounds", "3", "--limit", "10", "--json"},
               kPatienceCpus);
  if (!output.ok()) {
    test->trouble = output.status().message();
    return;
  }
  const nlohmann::json json = nlohmann::json::parse(output.value(), nullptr, false);
  const auto rows = json.is_object() ? json.find("rows") : json.end();
  if (!json.is_object() || rows == json.end() || !rows->is_array() || rows->empty() ||
      !(*rows)[0].is_object() || !(*rows)[0].contains("out_of_place")) {
    test->trouble = "diapason bench printed no figures";
    return;
  }
  const nlohmann::json& figure = (*rows)[0]["out_of_place"];
  test->headline = json.value("description", "");
  test->fallback_us = figure.value("median_us", 0.0);
  test->fallback_what = "10 MB on 2 ranks";
  test->fallback_wrong = figure.value("wrong", 0) != 0;
}

}  // namespace

TestResult RunShortTest(const host::Machine& machine) {
  TestResult test;
  test.wanted = true;
  test.on_gpus = !machine.gpus.empty();
  if (test.on_gpus) {
    MeasureGpus(machine, &test);
  } else {
    MeasureCpus(&test);
  }
  return test;
}

doctor::PluginFile FindOwnPlugin() {
  const std::string path = FindBesideUs("libnccl-tuner-diapason.so");
  if (path.empty()) return {};
  doctor::PluginFile plugin = doctor::LookAtPlugin(RootFs(), path);
  if (!plugin.trouble.empty()) return plugin;
  const Result<std::unique_ptr<client::PluginClient>> client = client::PluginClient::Open(path, 0);
  if (!client.ok()) plugin.trouble = client.status().message();
  const doctor::PluginFile profiler =
      doctor::LookAtPlugin(RootFs(), FindBesideUs("libnccl-profiler-diapason.so"));
  const doctor::PluginFile env =
      doctor::LookAtPlugin(RootFs(), FindBesideUs("libnccl-env-diapason.so"));
  if (plugin.profiler_apis.empty()) plugin.profiler_apis = profiler.profiler_apis;
  if (plugin.env_apis.empty()) plugin.env_apis = env.env_apis;
  return plugin;
}

}  // namespace diapason::cli
