#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/stats.h"
#include "rivals/rival.h"

namespace diapason::bench {

const std::vector<RivalMaker>& Rivals() {
  static const std::vector<RivalMaker> all = {{"coordinate descent", MakeCoordinateDescent},
                                              {"fewest channels first", MakeFewestChannels},
                                              {"bandit of three pairs", MakePairBandit},
                                              {"exhaustive in turn", MakeExhaustive}};
  return all;
}

std::vector<PairLadder> PairLadders(const std::vector<Config>& candidates) {
  std::vector<PairLadder> ladders;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Config& config = candidates[i];
    if (config.IsDefault()) continue;
    const auto found = std::find_if(ladders.begin(), ladders.end(), [&](const PairLadder& one) {
      return one.algorithm == config.algorithm && one.protocol == config.protocol;
    });
    PairLadder& ladder =
        found != ladders.end()
            ? *found
            : ladders.emplace_back(config.algorithm, config.protocol, std::vector<size_t>());
    ladder.candidates.push_back(i);
  }
  const auto channels = [&](size_t i) {
    return candidates[i].channels > 0 ? candidates[i].channels : INT32_MAX;
  };
  for (PairLadder& ladder : ladders) {
    std::stable_sort(ladder.candidates.begin(), ladder.candidates.end(),
                     [&](size_t a, size_t b) { return channels(a) < channels(b); });
  }
  return ladders;
}

double Times::Mean(size_t candidate) const {
  const std::vector<double>& all = seconds_[candidate];
  if (all.empty()) return INFINITY;
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

double Times::Median(size_t candidate) const {
  return seconds_[candidate].empty() ? INFINITY : diapason::Median(seconds_[candidate]);
}

double Times::FastMean(size_t candidate) const {
  std::vector<double> all = seconds_[candidate];
  if (all.empty()) return INFINITY;
  std::sort(all.begin(), all.end());
  all.resize((3 * all.size() + 3) / 4);
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

}  // namespace diapason::bench
