#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/bench/bench_options.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "comm/check.h"
#include "measure/targets.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using measure::GroupMeasurer;
using measure::Target;
using measure::TimingFigure;
using measure::Trial;

constexpr size_t kLargestFile = size_t{1} << 20;

// The result for one target: a value, or the reason why there is none.
struct TargetVerdict {
  double value = 0;
  std::string noise;   // interval of the value
  std::string reason;  // if not empty: why it was not measured here
};

TargetVerdict Skipped(const std::string& reason) { return {0, "", reason}; }

Result<TimingFigure> MeasureTarget(const BenchOptions& options, GroupMeasurer* measurer,
                                   const Target& target, int only_ranks, Trial* trial) {
  trial->operation = target.operation;
  trial->bytes = target.bytes;
  trial->only_ranks = only_ranks;
  const measure::Subject& subject = measurer->subject();
  const int ranks = only_ranks > 0 ? only_ranks : subject.ranks;
  // Whole elements: 100 KB cannot be divided into floats for every number of ranks.
  trial->bytes = measure::WholeBytes(*trial, ranks);
  if (!target.algorithm.empty()) {
    const Result<int> algorithm = ParseAlgorithm(
        subject.library, comm::CollectiveOf(target.operation).value_or(Collective::kAllReduce),
        target.algorithm);
    if (!algorithm.ok()) return algorithm.status();
    trial->config.algorithm = algorithm.value();
  }
  return measure::MeasureFigure(measurer, *trial, options.effort);
}

std::string Noise(const Target& target, double low, double high) {
  return "[" + measure::ValueText(target, low) + ", " + measure::ValueText(target, high) + "]";
}

Result<TargetVerdict> JudgeScaling(const BenchOptions& options, GroupMeasurer* measurer,
                                   const Target& target) {
  if (measurer->subject().ranks < target.ranks) {
    return Skipped(Format("needs %d ranks, there are %d", target.ranks, measurer->subject().ranks));
  }
  Trial two;
  Trial all;
  const Result<TimingFigure> of_two = MeasureTarget(options, measurer, target, 2, &two);
  if (!of_two.ok()) return of_two.status();
  const Result<TimingFigure> of_all = MeasureTarget(options, measurer, target, target.ranks, &all);
  if (!of_all.ok()) return of_all.status();
  for (const TimingFigure& figure : {of_two.value(), of_all.value()}) {
    if (!figure.fine()) return Skipped(figure.note);
  }
  const double before = measure::BusBandwidth(two, 2, of_two.value().median);
  TargetVerdict verdict;
  const auto share = [&](double seconds) {
    return measure::BusBandwidth(all, target.ranks, seconds) / before;
  };
  verdict.value = share(of_all.value().median);
  verdict.noise =
      Noise(target, share(of_all.value().interval.high), share(of_all.value().interval.low));
  return verdict;
}

Result<TargetVerdict> JudgeIteration(GroupMeasurer* measurer, const Target& target) {
  const std::string& backend = measurer->subject().backend;
  measure::PresetOptions preset;
  preset.host = backend == "gloo" || backend == "mpi";
  const Result<measure::IterationSpec> spec = measure::PresetSpec(target.preset, preset);
  if (!spec.ok()) return spec.status();
  const Result<measure::IterationTimes> times = measurer->Iterate(spec.value());
  if (!times.ok()) return times.status();
  TargetVerdict verdict;
  const double compute = Median(times.value().compute);
  if (!(compute > 0)) return Skipped("the iteration has no compute time");
  verdict.value = measure::ExposedSeconds(times.value()) / compute;
  const Interval interval = MedianInterval95(times.value().steps);
  verdict.noise = Noise(target, std::max(0.0, interval.low / compute - 1),
                        std::max(0.0, interval.high / compute - 1));
  return verdict;
}

Result<TargetVerdict> JudgeOne(const BenchOptions& options, GroupMeasurer* measurer,
                               const Target& target, double link) {
  if (target.goal == Target::Goal::kScaling) return JudgeScaling(options, measurer, target);
  if (target.goal == Target::Goal::kExposed) return JudgeIteration(measurer, target);
  if (target.goal == Target::Goal::kLinkShare && !(link > 0)) {
    return Skipped("the link bandwidth is not known; set it with --link GB/s");
  }
  Trial trial;
  const Result<TimingFigure> figure = MeasureTarget(options, measurer, target, 0, &trial);
  if (!figure.ok()) {
    if (figure.status().code() == ErrorCode::kInvalid) return Skipped(figure.status().message());
    return figure.status();
  }
  if (!figure.value().fine()) return Skipped(figure.value().note);
  const int ranks = measurer->subject().ranks;
  const auto value = [&](double seconds) {
    if (target.goal == Target::Goal::kTime) return seconds;
    const double bandwidth = measure::BusBandwidth(trial, ranks, seconds);
    return target.goal == Target::Goal::kLinkShare ? bandwidth / link : bandwidth;
  };
  const double one = value(figure.value().interval.low);
  const double other = value(figure.value().interval.high);
  return TargetVerdict{value(figure.value().median),
                       Noise(target, std::min(one, other), std::max(one, other)), ""};
}

std::string WhatText(const Target& target) {
  if (target.goal == Target::Goal::kExposed) return "iteration " + target.preset;
  return measure::CollectiveText(target.operation) + " " + FormatBytes(target.bytes) +
         (target.algorithm.empty() ? "" : " " + target.algorithm) +
         (target.ranks > 0 ? Format(" %d ranks", target.ranks) : "");
}

void PrintHead(const measure::Subject& subject, double link, const std::string& source) {
  std::printf("# %s, %s on %s%s\n", subject.description.c_str(),
              Count(static_cast<size_t>(subject.ranks), "rank").c_str(),
              Count(static_cast<size_t>(subject.nodes), "node").c_str(),
              subject.simulated ? "; every figure is simulated" : "");
  if (link > 0) std::printf("# link: %.2f GB/s each way, %s\n", link * 1e-9, source.c_str());
}

}  // namespace

int CompareWithTargets(const BenchOptions& options, GroupMeasurer* measurer) {
  const Result<std::string> text = ReadFile(options.targets, kLargestFile);
  if (!text.ok()) return Fail(text.status());
  const Result<std::vector<Target>> targets = measure::ParseTargets(text.value(), options.targets);
  if (!targets.ok()) return Fail(targets.status());
  std::string source;
  const Result<double> link = FindLink(options, measurer, &source);
  if (!link.ok()) return Fail(link.status());

  const measure::Subject& subject = measurer->subject();
  if (!options.json) PrintHead(subject, link.value(), source);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  report::Table table({"target", "what", "goal", "median", "95 % interval", "verdict"});
  int missed = 0;
  int skipped = 0;
  for (const Target& target : targets.value()) {
    const Result<TargetVerdict> verdict = JudgeOne(options, measurer, target, link.value());
    if (!verdict.ok()) {
      if (!options.json) std::fputs(table.Text().c_str(), stdout);
      return Fail(verdict.status().WithContext("target '" + target.name + "'"));
    }
    const TargetVerdict& one = verdict.value();
    const bool met = one.reason.empty() && measure::Meets(target, one.value);
    if (!one.reason.empty()) ++skipped;
    if (one.reason.empty() && !met) ++missed;
    table.Add({target.name, WhatText(target), measure::GoalText(target),
               one.reason.empty() ? measure::ValueText(target, one.value) : "-",
               one.reason.empty() ? one.noise : "-",
               !one.reason.empty() ? "not measured: " + one.reason : (met ? "met" : "MISSED")});
    list.push_back({{"target", target.name},
                    {"what", WhatText(target)},
                    {"goal", measure::GoalText(target)},
                    {"median", one.reason.empty() ? nlohmann::ordered_json(one.value) : nullptr},
                    {"interval", one.noise},
                    {"met", one.reason.empty() ? nlohmann::ordered_json(met) : nullptr},
                    {"not_measured", one.reason}});
  }
  if (options.json) {
    const nlohmann::ordered_json whole{{"subject", subject.description},
                                       {"ranks", subject.ranks},
                                       {"nodes", subject.nodes},
                                       {"simulated", subject.simulated},
                                       {"link_bytes_per_second", link.value()},
                                       {"targets", list}};
    std::printf("%s\n", JsonText(whole).c_str());
    return missed == 0 ? kExitFine : kExitFailed;
  }
  std::fputs(table.Text().c_str(), stdout);
  const size_t met = targets.value().size() - static_cast<size_t>(missed + skipped);
  std::printf("%zu met, %d missed, %d not measured\n", met, missed, skipped);
  return missed == 0 ? kExitFine : kExitFailed;
}

}  // namespace diapason::cli
