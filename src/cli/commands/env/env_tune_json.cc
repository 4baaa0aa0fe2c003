#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands/env/env_tune.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "env_tune/report.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

double Share(double log_gain) { return std::expm1(log_gain); }

ordered_json GainJson(const ShiftEstimate& shift) {
  return {
      {"estimate", Share(shift.estimate)}, {"low", Share(shift.low)}, {"high", Share(shift.high)}};
}

ordered_json SettingsJson(const env_tune::EnvVars& settings) {
  ordered_json json = ordered_json::object();
  for (const auto& [name, value] : settings) json[name] = value;
  return json;
}

}  // namespace

void PrintEnvTuneJson(const env_tune::TuneRequest& request, const env_tune::TuneResult& result,
                      const host::Machine& machine) {
  static constexpr const char* kEnds[] = {"done", "budget", "interrupted", "broken"};
  static constexpr const char* kAnswers[] = {"done", "not done", "not applicable"};
  const env_tune::Experiment& experiment = result.experiment;
  const env_tune::Validation& validation = experiment.validation();
  ordered_json json;
  json["conclusion"] = env_tune::ConclusionText(request, result);
  json["end"] = kEnds[static_cast<size_t>(result.end)];
  json["gain_claimed"] = validation.confirmed;
  json["settings"] = SettingsJson(experiment.Final());
  json["command"] = request.command;
  json["measure"] = env_tune::MeasureName(request.measure);
  json["higher_is_better"] = request.design.higher;
  json["binds"] = env_tune::BindsName(result.binding.binds);
  json["evidence"] = result.binding.evidence;
  ordered_json baseline = ordered_json::array();
  for (const env_tune::RunFigure& run : experiment.baseline()) {
    baseline.push_back({{"value", run.value}, {"cpu_s", run.cpu_s}, {"memory", run.memory}});
  }
  json["baseline"] = std::move(baseline);
  json["noise"] = experiment.Noise();
  json["runs"] = experiment.runs();
  json["elapsed_s"] = result.elapsed_s;
  ordered_json tried = ordered_json::array();
  for (size_t i = 0; i < experiment.candidates().size(); ++i) {
    const env_tune::KnobComparison& comparison = experiment.comparisons()[i];
    ordered_json one{{"name", experiment.candidates()[i].name},
                     {"value", experiment.candidates()[i].value},
                     {"verdict", env_tune::VerdictName(comparison.verdict)},
                     {"blocks", comparison.gains.size()},
                     {"level", comparison.alpha},
                     {"p", comparison.p}};
    if (!comparison.gains.empty()) one["gain"] = GainJson(comparison.shift);
    if (!comparison.why.empty()) one["why"] = comparison.why;
    one["against"] = SettingsJson(comparison.against);
    tried.push_back(std::move(one));
  }
  json["tried"] = std::move(tried);
  json["left_out"] = result.left_out;
  json["kept"] = SettingsJson(experiment.kept());
  if (!experiment.kept().empty()) {
    ordered_json fresh{{"complete", validation.complete}, {"confirmed", validation.confirmed}};
    if (!validation.failed.empty()) fresh["failed"] = validation.failed;
    if (validation.complete) {
      fresh["blocks"] = validation.gains.size();
      fresh["p"] = validation.p;
      fresh["gain"] = GainJson(validation.shift);
      fresh["drift_tuned"] = Share(validation.drift_tuned);
      fresh["drift_default"] = Share(validation.drift_default);
      fresh["spread_tuned"] = validation.spread_tuned;
      fresh["spread_default"] = validation.spread_default;
      fresh["stable"] = validation.stable();
    }
    json["validation"] = std::move(fresh);
  }
  if (!result.broken.empty()) json["broken"] = result.broken;
  ordered_json checklist = ordered_json::array();
  for (const env_tune::ChecklistLine& line : env_tune::Checklist(request, result, machine)) {
    checklist.push_back({{"what", line.what},
                         {"answer", kAnswers[static_cast<size_t>(line.answer)]},
                         {"evidence", line.evidence}});
  }
  json["checklist"] = std::move(checklist);
  PrintOut("{}\n", JsonText(json));
}

}  // namespace diapason::cli
