#include "measure/judge_targets.h"

#include <algorithm>

#include "base/interval_text.h"
#include "base/text.h"
#include "base/units.h"
#include "domain/collectives.h"

namespace diapason::measure {
namespace {

constexpr uint64_t kLinkBytes = uint64_t{16} << 20;
constexpr int kLinkIterations = 10;
// More neighbours than this do not change the estimate of the slowest link.
constexpr int kMostNeighbours = 16;

TargetVerdict NotMeasured(const std::string& reason) {
  TargetVerdict verdict;
  verdict.not_measured = reason;
  return verdict;
}

TargetVerdict Judged(const Target& target, size_t samples, double value, double one_end,
                     double other_end) {
  TargetVerdict verdict;
  verdict.samples = samples;
  verdict.value = value;
  verdict.interval = {std::min(one_end, other_end), std::max(one_end, other_end)};
  verdict.met = Meets(target, value);
  return verdict;
}

Result<TimingFigure> MeasureTarget(RankMeasurer* measurer, const Target& target,
                                   const Effort& effort, int only_ranks, Trial* trial) {
  trial->operation = target.operation;
  trial->bytes = target.bytes;
  trial->only_ranks = only_ranks;
  const Subject& subject = measurer->subject();
  const int ranks = only_ranks > 0 ? only_ranks : subject.ranks;
  // Whole elements: 100 KB cannot be divided into floats for every number of ranks.
  trial->bytes = WholeBytes(*trial, ranks);
  if (!target.algorithm.empty()) {
    ASSIGN_OR_RETURN(const int algorithm,
                     ParseAlgorithm(subject.library, NamesOf(target.operation), target.algorithm));
    trial->config.algorithm = algorithm;
  }
  return MeasureFigure(measurer, *trial, effort);
}

Result<TargetVerdict> JudgeScaling(RankMeasurer* measurer, const Target& target,
                                   const Effort& effort) {
  if (measurer->subject().ranks < target.ranks) {
    return NotMeasured(
        Format("needs {} ranks, there are {}", target.ranks, measurer->subject().ranks));
  }
  Trial two;
  Trial all;
  ASSIGN_OR_RETURN(const TimingFigure of_two, MeasureTarget(measurer, target, effort, 2, &two));
  ASSIGN_OR_RETURN(const TimingFigure of_all,
                   MeasureTarget(measurer, target, effort, target.ranks, &all));
  for (const TimingFigure& figure : {of_two, of_all}) {
    if (!figure.fine()) return NotMeasured(figure.note);
  }
  const double before = BusBandwidth(two, 2, of_two.median);
  const auto share = [&](double seconds) {
    return BusBandwidth(all, target.ranks, seconds) / before;
  };
  const TimingFigure& figure = of_all;
  return Judged(target, figure.rounds.size(), share(figure.median), share(figure.interval.high),
                share(figure.interval.low));
}

Result<TargetVerdict> JudgeIteration(RankMeasurer* measurer, const Target& target) {
  PresetOptions preset;
  preset.host = !AsksTuner(measurer->subject().library);
  ASSIGN_OR_RETURN(const IterationSpec spec, PresetSpec(target.preset, preset));
  ASSIGN_OR_RETURN(const IterationTimes times, measurer->Iterate(spec));
  const double compute = Median(times.compute);
  if (!(compute > 0)) return NotMeasured("the iteration has no compute time");
  const Interval interval = MedianInterval95(times.steps);
  return Judged(target, times.steps.size(), ExposedSeconds(times) / compute,
                std::max(0.0, interval.low / compute - 1),
                std::max(0.0, interval.high / compute - 1));
}

Result<TargetVerdict> JudgeCall(RankMeasurer* measurer, const Target& target, const Effort& effort,
                                double link) {
  Trial trial;
  const Result<TimingFigure> figure = MeasureTarget(measurer, target, effort, 0, &trial);
  if (!figure.ok()) {
    if (figure.status().code() == ErrorCode::kInvalid) {
      return NotMeasured(figure.status().message());
    }
    return figure.status();
  }
  if (!figure.value().fine()) return NotMeasured(figure.value().note);
  const int ranks = measurer->subject().ranks;
  const auto value = [&](double seconds) {
    if (target.goal == Target::Goal::kTime) return seconds;
    const double bandwidth = BusBandwidth(trial, ranks, seconds);
    return target.goal == Target::Goal::kLinkShare ? bandwidth / link : bandwidth;
  };
  return Judged(target, figure.value().rounds.size(), value(figure.value().median),
                value(figure.value().interval.low), value(figure.value().interval.high));
}

}  // namespace

Result<LinkBandwidth> FindLink(RankMeasurer* measurer, double given) {
  const Subject& subject = measurer->subject();
  if (given > 0) return LinkBandwidth{given, "as given"};
  if (subject.link_peak > 0) {
    return LinkBandwidth{subject.link_peak, subject.simulated ? "of the simulated cluster"
                                                              : "as the backend knows it"};
  }
  if (subject.ranks < 2) return LinkBandwidth{};
  double slowest = 0;
  for (int first = 0; first + 1 < std::min(subject.ranks, kMostNeighbours); ++first) {
    ASSIGN_OR_RETURN(const Measurement measurement,
                     measurer->MeasurePair(first, first + 1, kLinkBytes, kLinkIterations));
    if (measurement.outcome != dataset::SampleOutcome::kFine) {
      return PeerLost("measuring the link: " + measurement.note);
    }
    slowest = std::max(slowest, measurement.seconds);
  }
  return LinkBandwidth{slowest > 0 ? static_cast<double>(kLinkBytes) / slowest : 0.0,
                       "measured between neighbours"};
}

Result<TargetVerdict> JudgeTarget(RankMeasurer* measurer, const Target& target,
                                  const Effort& effort, double link) {
  switch (target.goal) {
    case Target::Goal::kScaling:
      return JudgeScaling(measurer, target, effort);
    case Target::Goal::kExposed:
      return JudgeIteration(measurer, target);
    case Target::Goal::kLinkShare:
      if (!(link > 0)) {
        return NotMeasured("the link bandwidth is not known; set it with --link GB/s");
      }
      break;
    case Target::Goal::kTime:
    case Target::Goal::kBusBandwidth:
      break;
  }
  return JudgeCall(measurer, target, effort, link);
}

std::string WhatText(const Target& target) {
  if (target.goal == Target::Goal::kExposed) return "iteration " + target.preset;
  return CollectiveText(target.operation) + " " + FormatBytes(target.bytes) +
         (target.algorithm.empty() ? "" : " " + target.algorithm) +
         (target.ranks > 0 ? Format(" {} ranks", target.ranks) : "");
}

std::string ValueText(const Target& target, const TargetVerdict& verdict) {
  return verdict.not_measured.empty() ? ValueText(target, verdict.value) : "-";
}

std::string IntervalText(const Target& target, const TargetVerdict& verdict) {
  if (!verdict.not_measured.empty()) return "-";
  return diapason::IntervalText(ValueText(target, verdict.interval.low),
                                ValueText(target, verdict.interval.high), verdict.samples);
}

std::string VerdictText(const TargetVerdict& verdict) {
  if (!verdict.not_measured.empty()) return "not measured: " + verdict.not_measured;
  return verdict.met ? "met" : "MISSED";
}

}  // namespace diapason::measure
