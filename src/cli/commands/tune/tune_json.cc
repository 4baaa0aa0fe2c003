#include <nlohmann/json.hpp>

#include "base/interval_text.h"
#include "cli/commands/model/model_data.h"
#include "cli/commands/tune/tune.h"
#include "cli/framework/json_text.h"
#include "domain/collectives.h"
#include "domain/decision.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

ordered_json FigureJson(const measure::TimingFigure& figure) {
  ordered_json json;
  json["median_us"] = Short(figure.median * 1e6);
  json["low_us"] = Short(figure.interval.low * 1e6);
  json["high_us"] = Short(figure.interval.high * 1e6);
  json["samples"] = figure.rounds.size();
  if (!figure.HasInterval()) json["range"] = true;  // low and high are of all samples
  return json;
}

ordered_json CheckJson(const measure::PolicyCheck& check) {
  ordered_json json;
  json["verdict"] = measure::PolicyVerdictName(check.verdict);
  json["gain"] = Short(check.gain);
  json["low"] = Short(check.interval.low);
  json["high"] = Short(check.interval.high);
  json["rounds"] = check.gains.size();
  if (!HasInterval95(check.gains.size())) json["range"] = true;  // low and high are of all rounds
  if (check.launches_differ) json["launches_differ"] = true;
  json["library"] = FigureJson(check.library);
  json["tuned"] = FigureJson(check.policy);
  return json;
}

ordered_json CallJson(const tune::TuneOutcome& outcome, const tune::TuneGoal& goal,
                      const tune::TunedCall& line) {
  const Library library = outcome.subject.library;
  const Collective collective = NamesOf(line.trial.operation);
  ordered_json one;
  one["collective"] = measure::CollectiveText(line.trial.operation);
  one["bytes"] = line.trial.bytes;
  if (!goal.mix.entries.empty()) one["weight"] = line.weight;
  one["ending"] = tune::CallOutcomeName(line.ending);
  one["configuration"] = ConfigText(library, collective, line.config);
  if (line.planned.has_value()) one["planned"] = ConfigText(library, collective, *line.planned);
  one["gain"] = Short(line.Gain());
  one["library"] = FigureJson(line.library);
  if (line.check.has_value()) one["check"] = CheckJson(*line.check);
  one["tried"] = line.tried;
  one["failed"] = line.failed;
  if (line.no_time) one["no_time"] = true;
  if (!line.why.empty()) one["why"] = line.why;
  return one;
}

// Every size from the smallest to the largest, once.
ordered_json CoverageJson(const tune::TuneOutcome& outcome) {
  ordered_json ranges = ordered_json::array();
  for (const tune::CoveredRange& covered : outcome.coverage) {
    ordered_json one;
    one["collective"] = measure::CollectiveText(covered.operation);
    one["first"] = covered.range.first;
    one["last"] = covered.range.last;
    one["configuration"] =
        ConfigText(outcome.subject.library, NamesOf(covered.operation), covered.range.config);
    one["support"] = tune::SupportName(covered.range.support);
    if (!covered.range.why.empty()) one["why"] = covered.range.why;
    ranges.push_back(std::move(one));
  }
  return ranges;
}

}  // namespace

std::string TuneJson(const TuneOptions& options, const tune::TuneOutcome& outcome,
                     const tune::TuneGoal& goal, const tune::TuneFiles& files) {
  const measure::Subject& subject = outcome.subject;
  ordered_json json;
  json["backend"] = subject.backend;
  json["library"] = LibraryName(subject.library);
  json["library_version"] = subject.machine.library_version;
  if (!options.job.file.empty() && !subject.simulated && subject.library == options.job.library) {
    json["library_file"] = options.job.file;
    json["library_file_because"] = options.job.WhyText();
  }
  json["description"] = subject.description;
  json["ranks"] = subject.ranks;
  json["nodes"] = subject.nodes;
  json["simulated"] = subject.simulated;
  if (!measure::CrowdedText(subject).empty()) json["crowded"] = measure::CrowdedText(subject);
  json["interrupted"] = outcome.interrupted;
  json["seconds"] = Short(outcome.seconds);
  json["samples"] = outcome.samples;
  json["launches"] = outcome.launches;
  json["tuned"] = outcome.Tuned();
  json["mean_gain"] = Short(outcome.MeanGain());
  if (goal.step.has_value()) {
    json["iteration"]["workload"] = measure::WorkloadText(*goal.step);
    if (outcome.whole.has_value()) json["iteration"]["check"] = CheckJson(*outcome.whole);
  } else if (!goal.mix.entries.empty()) {
    const tune::TuneOutcome::Total total = outcome.Weighted();
    json["workload"] = {{"calls", goal.mix.calls},
                        {"covered", Short(goal.mix.covered)},
                        {"library_us", Short(total.before * 1e6)},
                        {"tuned_us", Short(total.after * 1e6)},
                        {"judged", "calls alone"}};
  }
  json["changed"] = {{"sizes", outcome.ChangedGain().sizes},
                     {"gain", Short(outcome.ChangedGain().gain)}};
  json["undecided"] = outcome.OutOfTime();
  json["cannot_tell"] = outcome.CannotTell();
  if (outcome.channel_cap > 0) json["channel_cap"] = outcome.channel_cap;
  json["calls"] = ordered_json::array();
  for (const tune::TunedCall& line : outcome.lines) {
    json["calls"].push_back(CallJson(outcome, goal, line));
  }
  json["between"] = ordered_json::array();
  for (const tune::TunedCall& line : outcome.between) {
    json["between"].push_back(CallJson(outcome, goal, line));
  }
  json["coverage"] = CoverageJson(outcome);
  json["rows"] = outcome.policy.rules.size();
  json["files"] = {{"measurements", files.store}};
  if (!files.policy.empty()) json["files"]["policy"] = files.policy;
  if (!files.rules.empty()) json["files"]["rules"] = files.rules;
  if (!files.report.empty()) json["files"]["report"] = files.report;
  json["failures"] = outcome.failures;
  json["notes"] = outcome.notes;
  return JsonText(json) + "\n";
}

}  // namespace diapason::cli
