#include "model/noise.h"

#include <algorithm>
#include <cmath>

#include "base/normal.h"

namespace diapason::model {
namespace {

constexpr size_t kDisturbed = 3;

}  // namespace

NoiseTail::NoiseTail(std::vector<double> slow, std::vector<double> fast, size_t samples,
                     std::vector<double> residuals)
    : deviations_{std::move(slow), std::move(fast)},
      samples_(samples),
      residuals_(std::move(residuals)) {
  for (std::vector<double>& side : deviations_) std::sort(side.begin(), side.end());
}

double NoiseTail::Beyond(Side side, double deviation) const {
  if (deviation < 0) return 1 - Beyond(side == kSlow ? kFast : kSlow, -deviation);
  const std::vector<double>& all = deviations_[side];
  const auto first = std::upper_bound(all.begin(), all.end(), deviation);
  const auto seen = static_cast<double>(all.end() - first);
  const double share = (seen + 1) / (static_cast<double>(samples_) + 1);
  // Half of the samples are on the other side.
  return std::min(0.5, std::max(1 - NormalCdf(deviation), share));
}

size_t TestRank(size_t samples) {
  // The middle one, but three samples have to be off before the one of this rank is.
  if (samples <= kDisturbed) return 1;
  return std::min((samples + 1) / 2, samples - kDisturbed + 1);
}

double TestTail(const NoiseTail& tail, NoiseTail::Side side, size_t samples, double deviation) {
  // Fewer than `rank` samples are not off that far.
  const double off = tail.Beyond(side, deviation);
  const size_t rank = TestRank(samples);
  double term = std::pow(off, static_cast<double>(samples));
  double sum = 0;
  for (size_t fine = 0; fine < rank; ++fine) {
    sum += term;
    if (off <= 0) break;
    term *= static_cast<double>(samples - fine) / static_cast<double>(fine + 1) * (1 - off) / off;
  }
  return std::min(1.0, sum);
}

double MedianDeviationFactor(size_t samples) {
  // Wilson and Hilferty: the median of chi squared.
  const double freedom = static_cast<double>(samples) - 1;
  return std::pow(1 - 2 / (9 * freedom), 1.5);
}

}  // namespace diapason::model
