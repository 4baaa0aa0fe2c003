#include <algorithm>
#include <chrono>
#include <memory>

#include "base/text.h"
#include "cli/commands/doctor/doctor_report.h"
#include "cli/commands/ranks.h"
#include "comm/backend_facts.h"
#include "doctor/goals.h"
#include "measure/job_measurer.h"
#include "measure/judge_targets.h"

namespace diapason::cli {
namespace {

using doctor::TestResult;

constexpr std::chrono::minutes kPatience{2};  // no goal is begun later than this
constexpr double kStartLimit = 60;            // seconds until the ranks are there
constexpr size_t kGoalRanks = 4;              // the goals are defined for four GPUs

Result<std::unique_ptr<measure::JobMeasurer>> StartRanks(const std::string& backend, int ranks,
                                                         double limit, bool choose) {
  ASSIGN_OR_RETURN(const std::string self, OwnProgram());
  measure::JobMeasurerOptions job;
  job.backend = backend;
  job.launcher = measure::LauncherHere(backend, ranks, self);
  job.limit = limit;
  job.start_limit = kStartLimit;
  job.choose = choose;
  job.restarts = 1;  // what fails is reported, not tried for long
  return measure::JobMeasurer::Create(std::move(job));
}

void SetTrouble(const Status& status, TestResult* test) {
  test->trouble = status.message();
  test->timed_out = status.code() == ErrorCode::kTimeout;
}

Status JudgeGoals(measure::JobMeasurer* measurer, TestResult* test) {
  ASSIGN_OR_RETURN(const std::vector<measure::Target> goals,
                   measure::ParseTargets(doctor::kGoals, "goals"));
  ASSIGN_OR_RETURN(const measure::LinkBandwidth link, measure::FindLink(measurer, 0));
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (const measure::Target& goal : goals) {
    if (std::chrono::steady_clock::now() > deadline) {
      test->left_out = goals.size() - test->goals.size();
      return {};
    }
    const Result<measure::TargetVerdict> verdict =
        measure::JudgeTarget(measurer, goal, measure::Effort(), link.bytes_per_second);
    if (!verdict.ok()) return verdict.status().WithContext("goal '" + goal.name + "'");
    const auto& one = verdict.value();
    test->goals.push_back({goal.name, measure::WhatText(goal), measure::GoalText(goal),
                           measure::ValueText(goal, one), measure::IntervalText(goal, one),
                           measure::VerdictText(one)});
  }
  return {};
}

void MeasureGpus(const host::Machine& machine, TestResult* test) {
  const Library library =
      machine.gpus[0].vendor == host::Vendor::kAmd ? Library::kRccl : Library::kNccl;
  test->shared = machine.gpus.size() == 1;
  const size_t ranks = test->shared ? 2 : std::min(machine.gpus.size(), kGoalRanks);
  const Result<std::unique_ptr<measure::JobMeasurer>> measurer =
      StartRanks(comm::BackendOf(library), static_cast<int>(ranks), 30, true);
  test->ranks = ranks;
  if (!measurer.ok()) {
    SetTrouble(measurer.status(), test);
    return;
  }
  const measure::Subject& subject = measurer.value()->subject();
  test->headline = subject.description + ", " + Count(static_cast<size_t>(subject.ranks), "rank") +
                   " on " + Count(static_cast<size_t>(subject.nodes), "node");
  const Status judged = JudgeGoals(measurer.value().get(), test);
  if (!judged.ok()) SetTrouble(judged, test);
}

Result<measure::TimingFigure> TimeAllReduce(std::string* description) {
  ASSIGN_OR_RETURN(const std::unique_ptr<measure::JobMeasurer> measurer,
                   StartRanks(comm::BackendOf(Library::kGloo), 2, 10, false));
  *description = measurer->subject().description;
  measure::Trial trial;
  trial.bytes = 10'000'000;
  measure::Effort effort;
  effort.iterations = 5;
  effort.warmups = 2;
  effort.least_rounds = 3;
  effort.most_rounds = 3;
  return measure::MeasureFigure(measurer.get(), trial, effort);
}

void MeasureCpus(TestResult* test) {
  const Result<measure::TimingFigure> figure = TimeAllReduce(&test->headline);
  test->ranks = 2;
  if (!figure.ok()) {
    SetTrouble(figure.status(), test);
    return;
  }
  test->fallback_us = figure.value().median * 1e6;
  test->fallback_what = "10 MB on 2 ranks";
  test->fallback_wrong = figure.value().outcome == dataset::SampleOutcome::kWrong;
  if (!figure.value().fine() && !test->fallback_wrong) {
    test->trouble = figure.value().note;
    test->timed_out = figure.value().outcome == dataset::SampleOutcome::kHang;
  }
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
