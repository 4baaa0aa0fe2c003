#include "cli/commands/sweep/sweep_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/interval_text.h"
#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/sweep/sweep_progress.h"
#include "cli/framework/json_text.h"
#include "dataset/summary.h"
#include "measure/bench.h"
#include "report/table.h"
#include "search/sweep.h"

namespace diapason::cli {
namespace {

using dataset::SampleOutcome;
using nlohmann::ordered_json;
using report::Table;
using search::CallCase;
using search::CandidateSamples;
using search::CaseVerdict;

std::string MedianText(const CandidateSamples& evidence) {
  if (evidence.seconds.empty()) {
    return evidence.outcome == SampleOutcome::kFine ? "-" : dataset::OutcomeName(evidence.outcome);
  }
  return dataset::TimeFigureText(Median(evidence.seconds), MedianInterval95(evidence.seconds),
                                 evidence.seconds.size());
}

// Failures by kind and candidate, each with the sizes at which it failed.
std::string FailureText(const SweepPart& part) {
  std::map<std::string, std::vector<std::string>> failures;
  for (size_t i = 0; i < part.call_cases.size(); ++i) {
    const CallCase& call_case = part.call_cases[i];
    for (size_t j = 0; j < call_case.candidates.size(); ++j) {
      const CandidateSamples& evidence = part.known[i][j];
      if (evidence.outcome == SampleOutcome::kFine) continue;
      failures[std::string(dataset::OutcomeName(evidence.outcome)) + ": " +
               measure::CollectiveText(call_case.trial.operation) + " " +
               CandidateText(call_case, j, part.subject)]
          .push_back(FormatBytes(call_case.trial.bytes));
    }
  }
  std::string text;
  for (const auto& [what, sizes] : failures) {
    text += what + " at " +
            (sizes.size() > 4
                 ? Format("{} sizes, ", sizes.size()) + sizes.front() + " to " + sizes.back()
                 : Join(sizes, ", ")) +
            "\n";
  }
  return text;
}

// How much of a case was measured: nothing can be said of a default without a time, nor of a
// default that nothing was compared with.
enum class Seen { kNothing, kOnlyDefault, kBoth };

Seen SeenOf(const std::vector<CandidateSamples>& known) {
  const auto measured = [](const CandidateSamples& one) {
    return !one.seconds.empty() || one.outcome != SampleOutcome::kFine;
  };
  if (!measured(known.front())) return Seen::kNothing;
  const bool others = known.size() < 2 || std::any_of(known.begin() + 1, known.end(), measured);
  return others ? Seen::kBoth : Seen::kOnlyDefault;
}

std::string VerdictText(const CaseVerdict& verdict, const std::vector<CandidateSamples>& known) {
  switch (SeenOf(known)) {
    case Seen::kNothing:
      return "not measured";
    case Seen::kOnlyDefault:
      return "undecided: only the default was measured";
    case Seen::kBoth:
      break;
  }
  if (verdict.best != 0) return verdict.decided ? "change" : "likely, not certain";
  return verdict.decided ? "keep the default" : "tie, keep the default";
}

}  // namespace

std::string SweepTable(const SweepPart& part) {
  const std::vector<CaseVerdict> verdicts = search::Judge(part.call_cases, part.known);
  Table table({"collective", "size", "library default", "best", "time [95 %]", "gain", "verdict"});
  table.SetAlign({Table::Align::kLeft, Table::Align::kRight, Table::Align::kRight,
                  Table::Align::kLeft, Table::Align::kRight, Table::Align::kRight,
                  Table::Align::kLeft});
  table.SetImportance({9, 9, 1, 6, 3, 8, 7});
  std::vector<double> gains;
  for (size_t i = 0; i < part.call_cases.size(); ++i) {
    const CallCase& call_case = part.call_cases[i];
    const CaseVerdict& verdict = verdicts[i];
    const bool changed = verdict.best != 0;
    const double gain = changed && verdict.seconds > 0 ? verdict.against / verdict.seconds : 1;
    if (SeenOf(part.known[i]) == Seen::kBoth) {
      gains.push_back(gain > 0 && std::isfinite(gain) ? gain : 1);
    }
    table.Add({measure::CollectiveText(call_case.trial.operation),
               FormatBytes(call_case.trial.bytes), MedianText(part.known[i][0]),
               changed ? CandidateText(call_case, verdict.best, part.subject) : "library default",
               MedianText(part.known[i][verdict.best]), changed ? Format("{:.2f} x", gain) : "-",
               VerdictText(verdict, part.known[i])});
    if (!changed) continue;
    table.SetTone(5, report::ToneOfGain(gain));
    table.SetTone(6, verdict.decided ? Table::Tone::kGood : Table::Tone::kCaution);
  }
  const measure::Subject& subject = part.subject;
  std::string text = Format("# {}, {} on {}{}\n# {} samples in {}, {}{}\n", subject.description,
                            Count(static_cast<size_t>(subject.ranks), "rank"),
                            Count(static_cast<size_t>(subject.nodes), "node"),
                            subject.simulated ? "; every figure is simulated" : "", part.samples,
                            DurationText(part.seconds),
                            part.launches == 1 ? "1 launch" : Format("{} launches", part.launches),
                            part.finished ? "" : "; interrupted; --resume continues it");
  if (const std::string crowded = measure::CrowdedText(subject); !crowded.empty()) {
    text += "# " + crowded + "\n";
  }
  if (subject.library == Library::kRccl && !subject.simulated) {
    text +=
        "# the default here is RCCL with the diapason plugin loaded, which disables RCCL's own "
        "table;\n# \"NCCL_TUNER_PLUGIN=none\" is RCCL alone\n";
  }
  text += table.Text();
  const size_t open = part.call_cases.size() - gains.size();
  if (!gains.empty()) {
    text += Format("geometric mean of the gains: {:.2f} x\n", GeometricMean(gains));
  }
  if (open > 0)
    text += Count(open, "case") + " of " + std::to_string(part.call_cases.size()) +
            " not measured, and not part of any figure\n";
  return text + FailureText(part);
}

std::string SweepJson(const std::vector<SweepPart>& parts) {
  ordered_json all = ordered_json::array();
  for (const SweepPart& part : parts) {
    const std::vector<CaseVerdict> verdicts = search::Judge(part.call_cases, part.known);
    ordered_json json;
    json["backend"] = part.subject.backend;
    json["library"] = part.subject.machine.library;
    json["library_version"] = part.subject.machine.library_version;
    json["simulated"] = part.subject.simulated;
    json["ranks"] = part.subject.ranks;
    json["nodes"] = part.subject.nodes;
    if (const std::string crowded = measure::CrowdedText(part.subject); !crowded.empty()) {
      json["crowded"] = crowded;
    }
    json["samples"] = part.samples;
    json["seconds"] = part.seconds;
    json["launches"] = part.launches;
    json["finished"] = part.finished;
    ordered_json call_cases = ordered_json::array();
    for (size_t i = 0; i < part.call_cases.size(); ++i) {
      const CallCase& call_case = part.call_cases[i];
      ordered_json one;
      one["collective"] = measure::CollectiveText(call_case.trial.operation);
      one["bytes"] = call_case.trial.bytes;
      one["best"] = CandidateText(call_case, verdicts[i].best, part.subject);
      one["is_default"] = verdicts[i].best == 0;
      const Seen seen = SeenOf(part.known[i]);
      one["decided"] = verdicts[i].decided && seen == Seen::kBoth;
      one["measured"] = seen == Seen::kNothing ? "nothing"
                        : seen == Seen::kBoth  ? "all"
                                               : "default";
      one["best_us"] = verdicts[i].seconds * 1e6;
      one["default_us"] = verdicts[i].against * 1e6;
      ordered_json candidates = ordered_json::array();
      for (size_t j = 0; j < call_case.candidates.size(); ++j) {
        const CandidateSamples& evidence = part.known[i][j];
        ordered_json candidate;
        candidate["configuration"] = CandidateText(call_case, j, part.subject);
        candidate["outcome"] = dataset::OutcomeName(evidence.outcome);
        candidate["samples"] = evidence.seconds.size();
        if (!evidence.seconds.empty()) {
          const Interval interval = MedianInterval95(evidence.seconds);
          candidate["median_us"] = Median(evidence.seconds) * 1e6;
          candidate["low_us"] = interval.low * 1e6;
          candidate["high_us"] = interval.high * 1e6;
          if (!HasInterval95(evidence.seconds.size())) candidate["range"] = true;
        }
        candidates.push_back(std::move(candidate));
      }
      one["contenders"] = std::move(candidates);
      call_cases.push_back(std::move(one));
    }
    json["contests"] = std::move(call_cases);
    all.push_back(std::move(json));
  }
  return JsonText(all) + "\n";
}

SweepEstimate EstimateSweep(const std::vector<CallCase>& call_cases,
                            const measure::Subject& subject, int repeats, double block_seconds,
                            double launch_seconds, bool launch_each) {
  SweepEstimate estimate;
  estimate.call_cases = call_cases.size();
  std::set<std::string> environments;
  for (const CallCase& call_case : call_cases) {
    estimate.candidates += call_case.candidates.size();
    const double call = search::GuessSeconds(call_case.trial, subject);
    for (const search::Candidate& candidate : call_case.candidates) {
      environments.insert(candidate.environment);
    }
    // Each configuration is checked and warmed up once, and every block starts with a barrier.
    estimate.seconds += static_cast<double>(call_case.candidates.size()) *
                        (5 * call + repeats * (std::max(call, block_seconds) + 3e-4));
  }
  estimate.samples = static_cast<int64_t>(estimate.candidates) * repeats;
  estimate.launches = static_cast<int>(environments.size());
  if (launch_each) estimate.launches = static_cast<int>(estimate.samples);
  estimate.seconds += estimate.launches * launch_seconds;
  return estimate;
}

namespace {

using CasesByCollective = std::map<std::string, std::vector<const CallCase*>>;

CasesByCollective ByCollective(const std::vector<CallCase>& call_cases) {
  CasesByCollective collectives;
  for (const CallCase& call_case : call_cases) {
    collectives[measure::CollectiveText(call_case.trial.operation)].push_back(&call_case);
  }
  return collectives;
}

// The cases of one collective have the same configurations.
std::vector<std::string> ConfigurationsOf(const std::vector<const CallCase*>& call_cases,
                                          const measure::Subject& subject) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < call_cases.front()->candidates.size(); ++i) {
    texts.push_back(CandidateText(*call_cases.front(), i, subject));
  }
  return texts;
}

std::string PlanText(const SweepPlan& plan) {
  const SweepEstimate& estimate = plan.estimate;
  Table table({"collective", "sizes", "configurations"});
  std::string list;
  for (const auto& [name, some] : ByCollective(plan.call_cases)) {
    std::vector<std::string> sizes;
    for (const CallCase* call_case : some) sizes.push_back(FormatBytes(call_case->trial.bytes));
    const std::vector<std::string> configurations = ConfigurationsOf(some, plan.subject);
    table.Add({name, Join(sizes, " "), std::to_string(configurations.size())});
    list += name + ":\n  " + Join(configurations, "\n  ") + "\n";
  }
  return Format("{} on {}{}\n", Count(static_cast<size_t>(plan.subject.ranks), "rank"),
                Count(static_cast<size_t>(plan.subject.nodes), "node"),
                plan.subject.simulated ? ", simulated" : "") +
         table.Text() + list +
         Format("{}, {} configurations in total, {} samples, {}, about {}\n",
                Count(estimate.call_cases, "case"), estimate.candidates, estimate.samples,
                estimate.launches == 1 ? "1 launch" : Format("{} launches", estimate.launches),
                DurationText(estimate.seconds));
}

}  // namespace

std::string PlanText(const std::vector<SweepPlan>& plans) {
  std::string text;
  for (const SweepPlan& plan : plans) text += PlanText(plan);
  return text + "nothing was measured; the times of calls are estimates\n";
}

std::string PlanJson(const std::vector<SweepPlan>& plans) {
  ordered_json all = ordered_json::array();
  for (const SweepPlan& plan : plans) {
    ordered_json collectives = ordered_json::array();
    for (const auto& [name, some] : ByCollective(plan.call_cases)) {
      ordered_json bytes = ordered_json::array();
      for (const CallCase* call_case : some) bytes.push_back(call_case->trial.bytes);
      collectives.push_back({{"collective", name},
                             {"bytes", std::move(bytes)},
                             {"configurations", ConfigurationsOf(some, plan.subject)}});
    }
    all.push_back({{"dry_run", true},
                   {"backend", plan.subject.backend},
                   {"simulated", plan.subject.simulated},
                   {"ranks", plan.subject.ranks},
                   {"nodes", plan.subject.nodes},
                   {"collectives", std::move(collectives)},
                   {"cases", plan.estimate.call_cases},
                   {"configurations", plan.estimate.candidates},
                   {"samples", plan.estimate.samples},
                   {"launches", plan.estimate.launches},
                   {"estimated_seconds", plan.estimate.seconds}});
  }
  return JsonText(all) + "\n";
}

}  // namespace diapason::cli
