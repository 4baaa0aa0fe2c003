// result.json.
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/version.h"
#include "domain/schedule.h"
#include "job_profile/turns_json.h"
#include "job_tune/result.h"
#include "journal/record.h"

namespace diapason::job_tune {
namespace {

using job_profile::JobProfile;
using job_profile::Times;
using nlohmann::ordered_json;

ordered_json OrNull(double value, bool known) {
  return known ? ordered_json(value) : ordered_json();
}
ordered_json TextOrNull(const std::string& text) {
  return text.empty() ? ordered_json() : ordered_json(text);
}

void AddTimes(const Times& times, ordered_json* json) {
  (*json)["collectives_us"] = times.total * 1e6;
  (*json)["hidden_us"] = times.Hidden() * 1e6;
  (*json)["exposed_us"] = times.exposed * 1e6;
  (*json)["exposed_low_us"] = times.exposed_low * 1e6;
  (*json)["exposed_high_us"] = times.exposed_high * 1e6;
}

ordered_json ProfileOf(const JobProfile& profile) {
  if (profile.iteration <= 0) return {};
  ordered_json json = {{"headline", profile.Headline()},
                       {"iterations", profile.iterations},
                       {"iteration_us", profile.iteration * 1e6},
                       {"exposed_is_an_estimate", true}};
  AddTimes(profile.times, &json);
  json["compute_us"] =
      OrNull((profile.iteration - profile.times.total) * 1e6, profile.times.total > 0);
  json["classes"] = ordered_json::array();
  for (const job_profile::CallClass& one : profile.classes) {
    ordered_json added = {
        {"collective", one.collective == journal::kNamelessCollective
                           ? "?"
                           : CollectiveName(static_cast<Collective>(one.collective))},
        {"communicator", profile.roles[one.role].Text()},
        {"least_bytes", one.least_bytes},
        {"most_bytes", one.most_bytes},
        {"calls_per_iteration", one.calls_per_iteration}};
    AddTimes(one.times, &added);
    json["classes"].push_back(std::move(added));
  }
  json["notes"] = profile.notes;
  return json;
}

ordered_json ConfigJson(const JobContext& context, const Config& config) {
  if (config.IsDefault()) return {};
  return {{"algorithm", AlgorithmName(context.library, context.collective, config.algorithm)},
          {"protocol", ProtocolName(context.library, config.protocol)},
          {"channels", config.channels}};
}

ordered_json ContextJson(const TunedContext& one) {
  const JobContext& context = one.context;
  ordered_json tried = ordered_json::array();
  for (const TriedConfig& config : one.tried) {
    const bool known = config.gain > 0;
    ordered_json blocks = ordered_json::array();
    for (const TriedBlock& block : config.times) {
      blocks.push_back({{"us", block.seconds * 1e6}, {"default_us", block.default_seconds * 1e6}});
    }
    tried.push_back({{"config", ConfigJson(context, config.config)},
                     {"gain", OrNull(config.gain, known)},
                     {"low", OrNull(config.low, known)},
                     {"high", OrNull(config.high, known)},
                     {"blocks", config.blocks},
                     {"times", std::move(blocks)}});
  }
  return {{"library", LibraryName(context.library)},
          {"collective", CollectiveName(context.collective)},
          {"least_bytes", one.least_bytes},
          {"most_bytes", one.most_bytes},
          {"band_last", BandLast(context.band)},
          {"ranks", context.shape.ranks},
          {"nodes", context.shape.nodes},
          {"calls_per_iteration", one.calls_per_iteration},
          {"us_per_iteration", one.seconds * 1e6},
          {"chosen", ConfigJson(context, one.chosen)},
          {"untried", TextOrNull(one.untried)},
          {"tried_by", one.by_launches ? "launches" : "blocks"},
          {"tried", std::move(tried)}};
}

ordered_json GainJson(const PooledGain& gain) {
  const bool known = gain.gain > 0;
  return {{"compared", gain.by_pairs ? "between launches" : "in turns"},
          {"launches", gain.by_pairs ? 0 : gain.launches},
          {"undecided_launches", gain.by_pairs ? 0 : gain.undecided},
          {"pairs", gain.by_pairs ? gain.launches : 0},
          {"undecided_pairs", gain.by_pairs ? gain.undecided : 0},
          {"changes", gain.changes},
          {"gain", OrNull(gain.gain, known)},
          {"low", OrNull(gain.low, known)},
          {"high", OrNull(gain.high, known)},
          {"next_launch_low", OrNull(gain.next_low, known)},
          {"next_launch_high", OrNull(gain.next_high, known)},
          {"spread_of_launches", OrNull(gain.spread, known)},
          {"spread_is_assumed", gain.launches == 1},
          {"default_us", OrNull(gain.default_seconds * 1e6, known)},
          {"tuned_us", OrNull(gain.tuned_seconds * 1e6, known)}};
}

const char* MetricWord(MetricJudgement::Verdict verdict) {
  switch (verdict) {
    case MetricJudgement::Verdict::kNotAsked:
      return "not asked";
    case MetricJudgement::Verdict::kUnchanged:
      return "unchanged";
    case MetricJudgement::Verdict::kChanged:
      return "changed";
    case MetricJudgement::Verdict::kNotPrinted:
      return "not printed";
    case MetricJudgement::Verdict::kTooFew:
      break;
  }
  return "too few launches";
}

ordered_json MetricJson(const MetricJudgement& metric) {
  const bool compared = metric.verdict == MetricJudgement::Verdict::kUnchanged ||
                        metric.verdict == MetricJudgement::Verdict::kChanged;
  return {{"verdict", MetricWord(metric.verdict)},
          {"text", TextOrNull(metric.Text())},
          {"default", OrNull(metric.by_default, compared)},
          {"tuned", OrNull(metric.tuned, compared)},
          {"change", OrNull(metric.change, compared)},
          {"allowed", OrNull(metric.allowed, compared)}};
}

ordered_json PairsJson(const JobTuneResult& result) {
  ordered_json pairs = ordered_json::array();
  for (const VerifyingPair& one : result.pairs) {
    pairs.push_back({{"default_launch", one.default_launch},
                     {"policy_launch", one.policy_launch},
                     {"gain", OrNull(one.default_seconds / one.policy_seconds, one.Decided())},
                     {"default_us", OrNull(one.default_seconds * 1e6, one.default_seconds > 0)},
                     {"policy_us", OrNull(one.policy_seconds * 1e6, one.policy_seconds > 0)},
                     {"default_iterations", one.default_iterations},
                     {"policy_iterations", one.policy_iterations},
                     {"trouble", TextOrNull(one.trouble)}});
  }
  return pairs;
}

ordered_json SharesJson(const LookShares& shares) {
  using Of = LookShares::Of;
  return {{"of", shares.of == Of::kTime            ? "time"
                 : shares.of == Of::kEstimatedTime ? "estimated time"
                                                   : "calls"},
          {"by_launches", shares.by_launches},
          {"untried", shares.untried},
          {"reasons", shares.reasons}};
}

ordered_json LaunchesJson(const JobTuneResult& result) {
  ordered_json launches = ordered_json::array();
  for (const LaunchSummary& one : result.launches) {
    launches.push_back({{"number", one.number},
                        {"purpose", one.purpose},
                        {"seconds", one.seconds},
                        {"status", one.status},
                        {"ended_by_diapason", one.ended_by_us},
                        {"log", TextOrNull(one.log)}});
  }
  return launches;
}

}  // namespace

std::string ResultJson(const JobTuneResult& result) {
  ordered_json json = {{"diapason", kVersion},
                       {"command", MaskSecretsIn(result.command)},
                       {"verdict", VerdictName(result.verdict)},
                       {"headline", result.Headline()},
                       {"why", TextOrNull(result.why)},
                       {"interrupted", result.interrupted},
                       {"seconds", result.seconds},
                       {"timed", result.whole_launches ? "launches" : "iterations"},
                       {"gain", GainJson(result.gain)},
                       {"metric", MetricJson(result.metric)}};
  json["verified"] = ordered_json::array();
  for (const VerifyingLaunch& one : result.verified) {
    ordered_json added = {{"launch", one.launch}};
    added.update(job_profile::TurnComparisonJson(one.compared));
    json["verified"].push_back(std::move(added));
  }
  json["pairs"] = PairsJson(result);
  json["contexts"] = ordered_json::array();
  for (const TunedContext& one : result.contexts) json["contexts"].push_back(ContextJson(one));
  json["untried"] = result.Untried();
  json["shares"] = SharesJson(result.shares);
  json["policy"] = ordered_json::array();
  for (const policy::Rule& rule : result.policy.rules) {
    json["policy"].push_back(policy::RuleText(result.policy.library, rule));
  }
  json["look"] = ProfileOf(result.look);
  json["iteration"] = {{"default", ProfileOf(result.by_default)},
                       {"tuned", ProfileOf(result.tuned)},
                       {"launch", result.by_default.iteration > 0 ? ordered_json(result.gain.launch)
                                                                  : ordered_json()}};
  json["launches"] = LaunchesJson(result);
  json["files"] = {{"folder", TextOrNull(result.files.folder)},
                   {"policy", TextOrNull(result.files.policy)},
                   {"previous_policy", TextOrNull(result.files.previous)},
                   {"untouched_policy", TextOrNull(result.files.untouched)},
                   {"result", TextOrNull(result.files.result)},
                   {"measurements", TextOrNull(result.files.measurements)},
                   {"report", TextOrNull(result.files.report)}};
  json["use"] = TextOrNull(result.UseCommand());
  return PrintableJson(json.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

}  // namespace diapason::job_tune
