#include "tune/runoff.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "base/stats.h"

namespace diapason::tune {
namespace {

using search::Contest;
using search::Evidence;
using measure::Reading;

// Slower than the fastest by this: it will not win any more.
constexpr double kHopeless = 1.3;
constexpr int kMostOfFamily = 3;

// Channels by which a tie is broken: no number is the library's own, which can be any.
int ChannelsOf(const Config& config) { return config.channels == 0 ? 1 << 20 : config.channels; }

}  // namespace

std::vector<size_t> Finalists(const Contest& contest, const std::vector<Evidence>& evidence,
                              const std::vector<size_t>& hopefuls, size_t most) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t j = 1; j < contest.contenders.size(); ++j) {
    const bool usable = evidence[j].outcome == dataset::Outcome::kFine &&
                        !evidence[j].seconds.empty() && contest.contenders[j].environment.empty();
    if (usable) order.emplace_back(LowerMedian(evidence[j].seconds), j);
  }
  std::sort(order.begin(), order.end());
  std::vector<size_t> finalists = {0};
  std::map<std::pair<int, int>, int> families;
  for (const auto& [seconds, j] : order) {
    if (finalists.size() >= most || seconds > order.front().first * kHopeless) break;
    const Config& config = contest.contenders[j].config;
    if (++families[{config.algorithm, config.protocol}] <= kMostOfFamily) finalists.push_back(j);
  }
  for (const size_t j : hopefuls) {
    if (j > 0 && std::find(finalists.begin(), finalists.end(), j) == finalists.end()) {
      finalists.push_back(j);
    }
  }
  return finalists;
}

Result<std::vector<Winner>> RunOff(measure::Instrument* instrument,
                                   const std::vector<Contest>& contests,
                                   const std::vector<std::vector<size_t>>& finalists,
                                   const RunoffOptions& options,
                                   const search::Observer& observer) {
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double> limit(options.seconds);
  std::vector<std::map<size_t, std::vector<double>>> times(contests.size());
  std::vector<std::map<size_t, bool>> failed(contests.size());
  bool stopped = false;
  int rounds = 0;
  for (; rounds < options.most_rounds && !stopped; ++rounds) {
    const auto passed = std::chrono::steady_clock::now() - begin;
    if (rounds >= options.least_rounds && passed > limit) break;
    // Long calls: one round of all is better than none, and more than twice the time is too much.
    if (rounds >= 1 && passed > 2 * limit) break;
    for (size_t i = 0; i < contests.size() && !stopped; ++i) {
      const size_t count = finalists[i].size();
      if (count < 2) continue;
      for (size_t k = 0; k < count && !stopped; ++k) {
        const size_t j = finalists[i][(k + static_cast<size_t>(rounds)) % count];
        if (failed[i][j]) continue;
        measure::Trial trial = contests[i].trial;
        trial.config = contests[i].contenders[j].config;
        const Result<Reading> reading = instrument->Measure(trial);
        if (!reading.ok()) return reading.status();
        if (reading.value().outcome == dataset::Outcome::kFine) {
          times[i][j].push_back(std::max(reading.value().seconds, 1e-12));
        } else {
          failed[i][j] = true;
        }
        stopped = !observer(i, j, reading.value());
      }
    }
  }
  std::vector<Winner> winners(contests.size());
  for (size_t i = 0; i < contests.size(); ++i) {
    Winner& winner = winners[i];
    double fastest = INFINITY;
    for (const auto& [j, seconds] : times[i]) {
      if (failed[i][j]) continue;
      const double median = Median(seconds);
      if (j == 0) {
        winner.standard = median;
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
      if (near && ChannelsOf(contests[i].contenders[j].config) <
                      ChannelsOf(contests[i].contenders[winner.runner_up].config)) {
        winner.runner_up = j;
      }
    }
    winner.runner_up_seconds = Median(times[i][winner.runner_up]);
    winner.seconds = winner.standard;
    if (winner.standard > 0 && winner.runner_up_seconds * (1 + options.margin) < winner.standard) {
      winner.contender = winner.runner_up;
      winner.seconds = winner.runner_up_seconds;
    }
  }
  return winners;
}

}  // namespace diapason::tune
