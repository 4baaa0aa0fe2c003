#include "tune/final_round.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/stats.h"

namespace diapason::tune {
namespace {

using measure::Measurement;
using search::CallCase;
using search::CandidateSamples;

// Slower than the fastest by this: it will not win any more.
constexpr double kHopeless = 1.3;
constexpr int kMostOfFamily = 3;

// Channels by which a tie is broken: no number is the library's own, which can be any.
int ChannelsOf(const Config& config) { return config.channels == 0 ? 1 << 20 : config.channels; }

}  // namespace

std::vector<size_t> Finalists(const CallCase& call_case,
                              const std::vector<CandidateSamples>& evidence,
                              const std::vector<size_t>& promising, size_t most) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t j = 1; j < call_case.candidates.size(); ++j) {
    const bool usable = evidence[j].outcome == dataset::SampleOutcome::kFine &&
                        !evidence[j].seconds.empty() && call_case.candidates[j].environment.empty();
    if (usable) order.emplace_back(LowerMedian(evidence[j].seconds), j);
  }
  std::sort(order.begin(), order.end());
  std::vector<size_t> finalists = {0};
  std::map<std::pair<int, int>, int> families;
  for (const auto& [seconds, j] : order) {
    if (finalists.size() >= most || seconds > order.front().first * kHopeless) break;
    const Config& config = call_case.candidates[j].config;
    if (++families[{config.algorithm, config.protocol}] <= kMostOfFamily) finalists.push_back(j);
  }
  for (const size_t j : promising) {
    if (j > 0 && std::find(finalists.begin(), finalists.end(), j) == finalists.end()) {
      finalists.push_back(j);
    }
  }
  return finalists;
}

FinalRound::FinalRound(const std::vector<CallCase>& call_cases,
                       std::vector<std::vector<size_t>> finalists)
    : call_cases_(call_cases),
      finalists_(std::move(finalists)),
      times_(call_cases.size()),
      failed_(call_cases.size()) {}

Result<bool> FinalRound::RunOnce(measure::Measurer* measurer,
                                 const search::MeasurementObserver& observer) {
  for (size_t i = 0; i < call_cases_.size(); ++i) {
    const size_t count = finalists_[i].size();
    if (count < 2) continue;
    for (size_t k = 0; k < count; ++k) {
      const size_t j = finalists_[i][(k + round_) % count];
      if (failed_[i][j]) continue;
      measure::Trial trial = call_cases_[i].trial;
      trial.config = call_cases_[i].candidates[j].config;
      ASSIGN_OR_RETURN(const Measurement measurement, measurer->Measure(trial));
      if (measurement.outcome == dataset::SampleOutcome::kFine) {
        times_[i][j][launch_].push_back(std::max(measurement.seconds, 1e-12));
      } else {
        failed_[i][j] = true;
      }
      if (!observer(i, j, measurement)) return false;
    }
  }
  ++round_;
  return true;
}

Status FinalRound::Run(measure::Measurer* measurer, const FinalRoundOptions& options,
                       const search::MeasurementObserver& observer) {
  const double begin = options.clock();
  ++launch_;
  for (int rounds = 0; rounds < options.most_rounds; ++rounds) {
    const double passed = options.clock() - begin;
    if (rounds >= options.least_rounds && passed > options.seconds) break;
    // Long calls: one round of all is better than none, and more than twice the time is too much.
    if (rounds >= 1 && passed > 2 * options.seconds) break;
    ASSIGN_OR_RETURN(const bool more, RunOnce(measurer, observer));
    if (!more) break;
  }
  return {};
}

Winner FinalRound::WinnerOf(size_t call_case, double margin) const {
  Winner winner;
  for (const auto& [j, launches] : times_[call_case]) {
    const auto failed = failed_[call_case].find(j);
    if (failed != failed_[call_case].end() && failed->second) continue;
    std::vector<double> medians;
    for (const auto& [launch, seconds] : launches) medians.push_back(Median(seconds));
    if (!medians.empty()) winner.times[j] = GeometricMean(medians);
  }
  const auto own = winner.times.find(0);
  if (own != winner.times.end()) winner.library_default = winner.seconds = own->second;
  double fastest = INFINITY;
  for (const auto& [j, seconds] : winner.times) {
    if (j == 0 || seconds >= fastest) continue;
    fastest = seconds;
    winner.runner_up = j;
  }
  if (winner.runner_up == 0) return winner;
  const std::vector<search::Candidate>& candidates = call_cases_[call_case].candidates;
  for (const auto& [j, seconds] : winner.times) {
    if (j != 0 && seconds <= fastest * (1 + margin) &&
        ChannelsOf(candidates[j].config) < ChannelsOf(candidates[winner.runner_up].config)) {
      winner.runner_up = j;
    }
  }
  winner.runner_up_seconds = winner.times[winner.runner_up];
  for (const auto& [j, seconds] : winner.times) {
    if (j == 0 || j == winner.runner_up) continue;
    if (winner.second == 0 || seconds < winner.second_seconds) {
      winner.second = j;
      winner.second_seconds = seconds;
    }
  }
  if (winner.library_default > 0 &&
      winner.runner_up_seconds * (1 + margin) < winner.library_default) {
    winner.candidate = winner.runner_up;
    winner.seconds = winner.runner_up_seconds;
  }
  return winner;
}

std::vector<Winner> FinalRound::Winners(double margin) const {
  std::vector<Winner> winners;
  for (size_t i = 0; i < call_cases_.size(); ++i) winners.push_back(WinnerOf(i, margin));
  return winners;
}

Result<std::vector<Winner>> RunFinalRound(measure::Measurer* measurer,
                                          const std::vector<CallCase>& call_cases,
                                          const std::vector<std::vector<size_t>>& finalists,
                                          const FinalRoundOptions& options,
                                          const search::MeasurementObserver& observer) {
  FinalRound round(call_cases, finalists);
  RETURN_IF_ERROR(round.Run(measurer, options, observer));
  return round.Winners(options.margin);
}

}  // namespace diapason::tune
