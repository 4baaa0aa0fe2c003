#include <algorithm>
#include <chrono>
#include <memory>

#include "base/temporary_file.h"
#include "base/text.h"
#include "cli/commands/doctor/doctor_report.h"
#include "cli/commands/ranks.h"
#include "doctor/goals.h"
#include "launch/program.h"
#include "measure/bench.h"
#include "measure/job_measurer.h"

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

Result<measure::TimingFigure> TimeAllReduce(std::string* description) {
  const Result<std::string> self = OwnProgram();
  if (!self.ok()) return self.status();
  measure::JobMeasurerOptions job;
  job.backend = "gloo";
  job.launcher.self = self.value();
  job.launcher.ranks = 2;
  job.limit = 10;
  job.start_limit = static_cast<double>(kPatienceCpus.count());
  const Result<std::unique_ptr<measure::JobMeasurer>> measurer = measure::JobMeasurer::Create(job);
  if (!measurer.ok()) return measurer.status();
  *description = measurer.value()->subject().description;
  measure::Trial trial;
  trial.bytes = 10'000'000;
  measure::Effort effort;
  effort.iterations = 5;
  effort.warmups = 2;
  effort.least_rounds = 3;
  effort.most_rounds = 3;
  return measure::MeasureFigure(measurer.value().get(), trial, effort);
}

void MeasureCpus(TestResult* test) {
  const Result<measure::TimingFigure> figure = TimeAllReduce(&test->headline);
  if (!figure.ok()) {
    test->trouble = figure.status().message();
    return;
  }
  test->fallback_us = figure.value().median * 1e6;
  test->fallback_what = "10 MB on 2 ranks";
  test->fallback_wrong = figure.value().outcome == dataset::SampleOutcome::kWrong;
  if (!figure.value().fine() && !test->fallback_wrong) test->trouble = figure.value().note;
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

}  // namespace diapason::cli
