#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands/bench/bench_options.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "measure/judge_targets.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using measure::Target;
using measure::TargetVerdict;
using nlohmann::ordered_json;

constexpr size_t kLargestFile = size_t{1} << 20;

// The result of `bench --targets`.
struct TargetsResult {
  measure::Subject subject;
  measure::LinkBandwidth link;
  std::vector<std::pair<Target, TargetVerdict>> verdicts;

  size_t Met() const {
    return CountIf([](const TargetVerdict& one) { return one.met; });
  }
  size_t NotMeasured() const {
    return CountIf([](const TargetVerdict& one) { return !one.not_measured.empty(); });
  }
  size_t Missed() const { return verdicts.size() - Met() - NotMeasured(); }

 private:
  template <typename Rule>
  size_t CountIf(const Rule& rule) const {
    size_t count = 0;
    for (const auto& [target, verdict] : verdicts) count += rule(verdict) ? 1 : 0;
    return count;
  }
};

std::string TargetsText(const TargetsResult& result) {
  const measure::Subject& subject = result.subject;
  std::string text = Format("# {}, {} on {}{}\n", subject.description,
                            Count(static_cast<size_t>(subject.ranks), "rank"),
                            Count(static_cast<size_t>(subject.nodes), "node"),
                            subject.simulated ? "; every figure is simulated" : "");
  if (const std::string crowded = measure::CrowdedText(subject); !crowded.empty()) {
    text += "# " + crowded + "\n";
  }
  if (result.link.bytes_per_second > 0) {
    text += Format("# link: {:.2f} GB/s each way, {}\n", result.link.bytes_per_second * 1e-9,
                   result.link.source);
  }
  report::Table table({"target", "what", "goal", "median", "[95 %] or (range)", "verdict"});
  table.SetImportance({9, 2, 6, 7, 1, 8});
  for (const auto& [target, verdict] : result.verdicts) {
    table.Add({target.name, measure::WhatText(target), measure::GoalText(target),
               measure::ValueText(target, verdict), measure::IntervalText(target, verdict),
               measure::VerdictText(verdict)});
    table.SetTone(5, !verdict.not_measured.empty() ? report::Table::Tone::kCaution
                     : verdict.met                 ? report::Table::Tone::kGood
                                                   : report::Table::Tone::kBad);
  }
  return text + table.Text();
}

std::string TargetsJson(const TargetsResult& result) {
  ordered_json list = ordered_json::array();
  for (const auto& [target, verdict] : result.verdicts) {
    const bool measured = verdict.not_measured.empty();
    list.push_back({{"target", target.name},
                    {"what", measure::WhatText(target)},
                    {"goal", measure::GoalText(target)},
                    {"median", measured ? ordered_json(verdict.value) : nullptr},
                    {"interval", measured ? measure::IntervalText(target, verdict) : ""},
                    {"samples", verdict.samples},
                    {"met", measured ? ordered_json(verdict.met) : nullptr},
                    {"not_measured", verdict.not_measured}});
  }
  return JsonText(ordered_json{{"subject", result.subject.description},
                               {"ranks", result.subject.ranks},
                               {"nodes", result.subject.nodes},
                               {"simulated", result.subject.simulated},
                               {"link_bytes_per_second", result.link.bytes_per_second},
                               {"targets", list}});
}

}  // namespace

Result<int> CompareWithTargets(const BenchOptions& options, measure::RankMeasurer* measurer) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(options.targets, kLargestFile));
  ASSIGN_OR_RETURN(const std::vector<Target> targets, measure::ParseTargets(text, options.targets));
  ASSIGN_OR_RETURN(const measure::LinkBandwidth link,
                   measure::FindLink(measurer, options.link * 1e9));

  TargetsResult result{measurer->subject(), link, {}};
  Status broken;
  for (const Target& target : targets) {
    const Result<TargetVerdict> verdict =
        measure::JudgeTarget(measurer, target, options.effort, link.bytes_per_second);
    if (!verdict.ok()) {
      broken = verdict.status().WithContext("target '" + target.name + "'");
      break;
    }
    result.verdicts.emplace_back(target, verdict.value());
  }
  PrintOut("{}{}", (options.json ? TargetsJson(result) : TargetsText(result)),
           options.json ? "\n" : "");
  if (!broken.ok()) return broken;
  if (!options.json) {
    PrintOut("{} met, {} missed, {} not measured\n", result.Met(), result.Missed(),
             result.NotMeasured());
  }
  return result.Missed() == 0 ? kExitFine : kExitFailed;
}

}  // namespace diapason::cli
