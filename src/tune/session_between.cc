// Looks between the sizes of a tuning: where the configurations of two neighbours differ, for the
// border; where they are the same, for a dip that the two do not show.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "tune/session_state.h"

namespace diapason::tune {
namespace {

using search::CallCase;

// A border is looked for so often again where taking the wrong side of it costs more than this
// (log): each halves the gap that it is in.
constexpr double kCostlyBorder = 0.06;
constexpr int kBorderPasses = 3;
// What was tried at a size says something about sizes up to so many doublings away.
constexpr double kNearBy = 3;
// Rounds that a gap needs, and how much longer than planned its blocks may take.
constexpr double kGapRounds = 4;

}  // namespace

// Two neighbours of one operation.
struct TuneSession::Gap {
  size_t low = 0;
  size_t high = 0;
  double worth = 0;  // what a wrong choice between them may cost (log)
};

std::vector<size_t> TuneSession::InOrder() const {
  std::vector<size_t> order;
  for (size_t i = 0; i < call_cases_.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const measure::Trial& one = call_cases_[a].trial;
    const measure::Trial& other = call_cases_[b].trial;
    return std::pair(one.operation, one.bytes) < std::pair(other.operation, other.bytes);
  });
  return order;
}

const Config& TuneSession::WinnerConfig(size_t call_case) const {
  return call_cases_[call_case].candidates[winners_[call_case].candidate].config;
}

double TuneSession::GainSeen(size_t call_case, const Config& config) const {
  const Winner& winner = winners_[call_case];
  for (const auto& [candidate, seconds] : winner.times) {
    if (call_cases_[call_case].candidates[candidate].config == config &&
        winner.library_default > 0) {
      return winner.library_default / seconds;
    }
  }
  return 0;
}

std::vector<TuneSession::Gap> TuneSession::FindGaps(bool borders) const {
  std::vector<Gap> gaps;
  const std::vector<size_t> order = InOrder();
  for (size_t k = 1; k < order.size(); ++k) {
    const size_t low = order[k - 1];
    const size_t high = order[k];
    if (call_cases_[low].trial.operation != call_cases_[high].trial.operation) continue;
    const Config& before = WinnerConfig(low);
    const Config& after = WinnerConfig(high);
    // The library decides on both sides, and so between them.
    if (before.IsDefault() && after.IsDefault()) continue;
    Gap gap{low, high, 0};
    for (const size_t side : {low, high}) {
      const double own = GainSeen(side, WinnerConfig(side));
      const double other = GainSeen(side, side == low ? after : before);
      if (own > 0) gap.worth = std::max(gap.worth, std::log(own / (other > 0 ? other : 1)));
      // A dip under one configuration costs at most what it gains elsewhere.
      if (before == after && own > 0) gap.worth = std::max(gap.worth, std::log(own) / 2);
    }
    if (borders) {
      const bool looked = low >= asked_ || high >= asked_;
      if (before == after || !looked || gap.worth < kCostlyBorder) continue;
    }
    gaps.push_back(gap);
  }
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.worth > b.worth; });
  return gaps;
}

search::CallCase TuneSession::CaseBetween(const Gap& gap, uint64_t bytes) const {
  CallCase made;
  made.trial = call_cases_[gap.low].trial;
  made.trial.bytes = bytes;
  made.candidates = {call_cases_[gap.low].candidates.front()};
  const bool wide = static_cast<double>(call_cases_[gap.high].trial.bytes) >
                    kWidestGap * static_cast<double>(call_cases_[gap.low].trial.bytes);
  const auto add = [&](size_t call_case, size_t candidate) {
    if (candidate == 0) return;
    const search::Candidate& one = call_cases_[call_case].candidates[candidate];
    if (std::find(made.candidates.begin(), made.candidates.end(), one) == made.candidates.end()) {
      made.candidates.push_back(one);
    }
  };
  for (const size_t side : {gap.low, gap.high}) {
    add(side, winners_[side].runner_up);
    // Far from both, others may be the best.
    if (wide) add(side, winners_[side].second);
  }
  return made;
}

Status TuneSession::MeasureBetween(double until) {
  for (int pass = 0; pass <= kBorderPasses; ++pass) {
    const bool borders = pass > 0;
    const size_t first = call_cases_.size();
    std::vector<CallCase> cases;
    double needed = 0;
    for (const Gap& gap : FindGaps(borders)) {
      const uint64_t low = call_cases_[gap.low].trial.bytes;
      for (const uint64_t bytes : SizesBetween(low, call_cases_[gap.high].trial.bytes)) {
        CallCase made = CaseBetween(gap, bytes);
        if (made.candidates.size() < 2 ||
            measure::CountOf(made.trial, outcome_.subject.ranks) == 0) {
          continue;
        }
        needed += kGapRounds * static_cast<double>(made.candidates.size()) *
                  std::max(cost_[gap.low], cost_[gap.high]);
        if (Passed() + needed > until && options_.samples == 0) break;
        cases.push_back(std::move(made));
      }
    }
    if (cases.empty()) return {};
    std::vector<std::vector<size_t>> all;
    size_t samples_per_round = 0;
    for (const CallCase& one : cases) {
      call_cases_.push_back(one);
      known_.emplace_back(one.candidates.size());
      all.emplace_back();
      for (size_t j = 0; j < one.candidates.size(); ++j) all.back().push_back(j);
      samples_per_round += one.candidates.size();
    }
    FinalRound round(cases, all);
    // As much for the borders as for all gaps.
    const double share = Passed() + (until - Passed()) / (pass == 0 ? 2 : kBorderPasses + 1 - pass);
    RETURN_IF_ERROR(RunFinal(&round, first, 1, share, samples_per_round));
    for (Winner& winner : round.Winners(FinalRoundOptions().margin)) {
      winners_.push_back(std::move(winner));
    }
    if (stopped_) return {};
  }
  return {};
}

// Pairs that have neither a time nor a failure at this size and those near it.
size_t TuneSession::UntriedPairs(size_t call_case) const {
  const auto pair = [](const Config& config) {
    return std::pair(config.algorithm, config.protocol);
  };
  std::set<std::pair<int, int>> untried;
  for (const search::Candidate& one : call_cases_[call_case].candidates) {
    if (!one.config.IsDefault()) untried.insert(pair(one.config));
  }
  const measure::Trial& here = call_cases_[call_case].trial;
  for (size_t i = 0; i < asked_; ++i) {
    const measure::Trial& there = call_cases_[i].trial;
    const double apart = std::fabs(std::log2(static_cast<double>(there.bytes)) -
                                   std::log2(static_cast<double>(here.bytes)));
    if (there.operation != here.operation || apart > kNearBy) continue;
    for (size_t j = 0; j < call_cases_[i].candidates.size(); ++j) {
      const search::CandidateSamples& seen = known_[i][j];
      if (!seen.seconds.empty() || seen.outcome != dataset::SampleOutcome::kFine) {
        untried.erase(pair(call_cases_[i].candidates[j].config));
      }
    }
  }
  return untried.size();
}

// A winner beside two neighbours that agree on another configuration may have won by luck: both are
// verified.
void TuneSession::FindNeighbours() {
  std::vector<size_t> order;
  for (const size_t i : InOrder()) {
    if (i < asked_) order.push_back(i);
  }
  for (size_t k = 1; k + 1 < order.size(); ++k) {
    const auto operation = [&](size_t i) { return call_cases_[i].trial.operation; };
    if (operation(order[k - 1]) != operation(order[k + 1])) continue;
    const Config& around = WinnerConfig(order[k - 1]);
    if (around.IsDefault() || !(around == WinnerConfig(order[k + 1])) ||
        around == WinnerConfig(order[k])) {
      continue;
    }
    outcome_.lines[order[k]].neighbours = around;
  }
}

}  // namespace diapason::tune
