#include "tune/final_round.h"

#include <algorithm>
#include <chrono>
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

Result<std::vector<Winner>> RunFinalRound(measure::Measurer* measurer,
                                          const std::vector<CallCase>& call_cases,
                                          const std::vector<std::vector<size_t>>& finalists,
                                          const FinalRoundOptions& options,
                                          const search::MeasurementObserver& observer) {
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double> limit(options.seconds);
  std::vector<std::map<size_t, std::vector<double>>> times(call_cases.size());
  std::vector<std::map<size_t, bool>> failed(call_cases.size());
  bool stopped = false;
  int rounds = 0;
  for (; rounds < options.most_rounds && !stopped; ++rounds) {
    const auto passed = std::chrono::steady_clock::now() - begin;
    if (rounds >= options.least_rounds && passed > limit) break;
    // Long calls: one round of all is better than none, and more than twice the time is too much.
    if (rounds >= 1 && passed > 2 * limit) break;
    for (size_t i = 0; i < call_cases.size() && !stopped; ++i) {
      const size_t count = finalists[i].size();
      if (count < 2) continue;
      for (size_t k = 0; k < count && !stopped; ++k) {
        const size_t j = finalists[i][(k + static_cast<size_t>(rounds)) % count];
        if (failed[i][j]) continue;
        measure::Trial trial = call_cases[i].trial;
        trial.config = call_cases[i].candidates[j].config;
        ASSIGN_OR_RETURN(const Measurement measurement, measurer->Measure(trial));
        if (measurement.outcome == dataset::SampleOutcome::kFine) {
          times[i][j].push_back(std::max(measurement.seconds, 1e-12));
        } else {
          failed[i][j] = true;
        }
        stopped = !observer(i, j, measurement);
      }
    }
  }
  std::vector<Winner> winners(call_cases.size());
  for (size_t i = 0; i < call_cases.size(); ++i) {
    Winner& winner = winners[i];
    double fastest = INFINITY;
    for (const auto& [j, seconds] : times[i]) {
      if (failed[i][j]) continue;
      const double median = Median(seconds);
      if (j == 0) {
        winner.library_default = median;
        continue;
      }
      if (median < fastest) {
        fastest = median;
        winner.runner_up = j;
      }
    }
    if (winner.runner_up == 0) continue;
    for (const auto& [j, seconds] : times[i]) {
      if (j == 0 || failed[i][j]) continue;
      const bool near = Median(seconds) <= fastest * (1 + options.margin);
      if (near && ChannelsOf(call_cases[i].candidates[j].config) <
                      ChannelsOf(call_cases[i].candidates[winner.runner_up].config)) {
        winner.runner_up = j;
      }
    }
    winner.runner_up_seconds = Median(times[i][winner.runner_up]);
    winner.seconds = winner.library_default;
    if (winner.library_default > 0 &&
        winner.runner_up_seconds * (1 + options.margin) < winner.library_default) {
      winner.candidate = winner.runner_up;
      winner.seconds = winner.runner_up_seconds;
    }
  }
  return winners;
}

}  // namespace diapason::tune
