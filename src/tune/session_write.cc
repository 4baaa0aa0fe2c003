// Writes down what is proven: rows, what supports them, and what is left to the library.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "domain/collectives.h"
#include "policy/parse.h"
#include "policy/table.h"
#include "tune/session_state.h"

namespace diapason::tune {
namespace {

using measure::PolicyVerdict;
using measure::Trial;

// Nobody's buckets have exactly the bytes that a step was made of.
constexpr double kStepEdge = 1.5;
// Between two verified sizes of one configuration it may be this much slower than the default
// before the library gets the size back; beside one of them it has to be faster.
constexpr double kNotSlower = 0.99;
constexpr double kFasterThere = 1.02;

}  // namespace

Config TuneSession::Decided(const policy::Policy& policy, const Trial& trial) const {
  const policy::DecisionTable table(policy,
                                    {{outcome_.subject.nodes, outcome_.subject.ranks}, false});
  Question question;
  question.collective = CollectiveOf(trial);
  question.bytes = trial.bytes;
  const policy::DecisionTable::Entry* const entry = table.Find(question);
  return entry == nullptr ? Config() : entry->config();
}

std::vector<Stop> TuneSession::StopsOf(Operation operation) const {
  std::vector<Stop> stops;
  std::vector<size_t> lines;
  for (const size_t i : InOrder()) {
    const TunedCall& line = outcome_.lines[i];
    if (line.trial.operation != operation) continue;
    Stop stop;
    stop.bytes = line.trial.bytes;
    stop.config = line.config;
    stop.support = line.ending == CallOutcome::kTuned ? Support::kVerified : Support::kLeft;
    stop.why = line.why;
    for (const auto& [candidate, seconds] : winners_[i].times) {
      stop.times.emplace_back(call_cases_[i].candidates[candidate].config, seconds);
    }
    stops.push_back(std::move(stop));
    lines.push_back(i);
  }
  SettleBetween(&stops, lines);
  return stops;
}

// Sizes between that were measured and not verified: they follow their neighbours where what was
// seen there allows it.
void TuneSession::SettleBetween(std::vector<Stop>* stops, const std::vector<size_t>& lines) const {
  const std::vector<Stop> verified = *stops;
  const auto neighbour = [&](size_t from, int step) -> Config {
    for (size_t i = from + static_cast<size_t>(step); i < verified.size();
         i += static_cast<size_t>(step)) {
      if (lines[i] < asked_ || verified[i].support == Support::kVerified) return verified[i].config;
    }
    return {};
  };
  for (size_t k = 0; k < stops->size(); ++k) {
    const size_t i = lines[k];
    const TunedCall& line = outcome_.lines[i];
    if (!line.between || line.ending == CallOutcome::kTuned) continue;
    Stop& stop = (*stops)[k];
    const Config low = neighbour(k, -1);
    const Config high = neighbour(k, 1);
    const bool same = low == high;
    // The faster of the two here.
    const Config config = GainSeen(i, low) >= GainSeen(i, high) ? low : high;
    if (config.IsDefault()) {
      if (stop.why.empty()) stop.why = "the library's choice is as fast here";
      continue;
    }
    double seen = GainSeen(i, config);
    bool refused = false;
    if (line.check.has_value() && line.planned == config && !line.no_time) {
      refused = line.check->verdict == PolicyVerdict::kFailed ||
                line.check->verdict == PolicyVerdict::kSlower;
      if (line.check->gain > 0) seen = line.check->gain;
    }
    if (!refused && seen >= (same ? kNotSlower : kFasterThere)) {
      stop.config = config;
      stop.support = Support::kMeasured;
      stop.why.clear();
      continue;
    }
    stop.why = Format("measured between the sizes: {} is {:.2f} x there",
                      ConfigText(outcome_.subject.library, CollectiveOf(line.trial), config), seen);
  }
}

std::string TuneSession::RowRemark(const CoveredRange& covered) const {
  std::vector<double> gains;
  const TunedCall* least = nullptr;
  size_t seen = 0;
  bool asked = false;  // one of the sizes that were asked for is verified
  for (const TunedCall& line : outcome_.lines) {
    if (line.trial.operation != covered.operation || line.trial.bytes < covered.range.first ||
        line.trial.bytes > covered.range.last) {
      continue;
    }
    if (line.ending != CallOutcome::kTuned) {
      ++seen;
      continue;
    }
    gains.push_back(line.Gain());
    asked = asked || !line.between;
    if (least == nullptr || line.Gain() < least->Gain()) least = &line;
  }
  if (!asked) return "";
  return Format("verified: {:.2f} x over {}, at least {:.2f} x [{:.2f}, {:.2f}] in {}{}",
                GeometricMean(gains), Count(gains.size(), "size"), least->check->gain,
                least->check->interval.low, least->check->interval.high,
                Count(least->check->gains.size(), "round"),
                seen == 0 ? "" : "; measured: " + Count(seen, "size") + " between");
}

Status TuneSession::Write() {
  ASSIGN_OR_RETURN(const model::Grid grid, ReadGrid());
  policy::Policy& policy = outcome_.policy;
  policy.library = outcome_.subject.library;
  policy.header.origin = options_.origin;
  policy.header.fingerprint = grid.machine;
  CoverageOptions options;
  if (Iterations()) options.edge = kStepEdge;
  std::set<Operation> operations;
  for (const TunedCall& line : outcome_.lines) operations.insert(line.trial.operation);
  std::vector<std::string> remarks;
  for (const Operation operation : operations) {
    for (Range& range : Cover(StopsOf(operation), options)) {
      range.stops.clear();
      outcome_.coverage.push_back({operation, std::move(range)});
      CoveredRange& covered = outcome_.coverage.back();
      if (covered.range.config.IsDefault()) continue;
      const std::string remark = RowRemark(covered);
      if (remark.empty()) {
        // Beside a verified size, and cut off from it by one where it does not hold.
        covered.range.config = {};
        covered.range.support = Support::kLeft;
        covered.range.why = "no size that was asked for is verified in this range";
        continue;
      }
      policy::Rule rule;
      rule.collective = NamesOf(operation);
      rule.min_bytes = covered.range.first;
      rule.max_bytes = covered.range.last;
      rule.config = covered.range.config;
      rule.nodes = outcome_.subject.nodes;
      rule.ranks = outcome_.subject.ranks;
      rule.line = static_cast<int>(policy.rules.size()) + 1;
      remarks.push_back(remark);
      policy.rules.push_back(rule);
    }
  }
  for (TunedCall& line : outcome_.lines) {
    if (line.between) line.config = Decided(policy, line.trial);
    if (line.between || Decided(policy, line.trial) == line.config) continue;
    return Internal("the policy does not say what was proven for " + CallText(line.trial));
  }
  outcome_.policy_text = policy::PolicyText(policy, remarks);
  // As a reader finds it: rows have the lines of the file then.
  ASSIGN_OR_RETURN(policy, policy::ParseStrictly(outcome_.policy_text, "policy.conf", {}));
  return {};
}

}  // namespace diapason::tune
