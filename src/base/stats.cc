#include "base/stats.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>

namespace diapason {

double Quantile(std::vector<double> samples, double share) {
  assert(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const double position = share * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (samples[above] - samples[below]) * (position - double(below));
}

double LowerMedian(std::vector<double> samples) {
  assert(!samples.empty());
  const auto middle = samples.begin() + static_cast<ptrdiff_t>((samples.size() - 1) / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

double Mean(const std::vector<double>& samples) {
  assert(!samples.empty());
  double sum = 0;
  for (const double sample : samples) sum += sample;
  return sum / static_cast<double>(samples.size());
}

double GeometricMean(const std::vector<double>& samples) {
  double sum = 0;
  for (const double sample : samples) sum += std::log(sample);
  return samples.empty() ? 1 : std::exp(sum / static_cast<double>(samples.size()));
}

double RobustDeviation(std::vector<double> samples) {
  if (samples.size() < 2) return 0;
  const double middle = Median(samples);
  for (double& sample : samples) sample = std::fabs(sample - middle);
  return kMadToDeviation * Median(std::move(samples));
}

double StandardDeviation(const std::vector<double>& samples) {
  assert(samples.size() >= 2);
  const double mean = Mean(samples);
  double sum = 0;
  for (const double sample : samples) sum += (sample - mean) * (sample - mean);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

Interval MedianInterval95(std::vector<double> samples) {
  assert(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const double n = static_cast<double>(samples.size());
  const double half_width = 1.96 * std::sqrt(n) / 2;
  const double low = std::max(0.0, std::floor(n / 2 - half_width));
  const double high = std::min(n - 1, std::ceil(n / 2 + half_width));
  return {samples[static_cast<size_t>(low)], samples[static_cast<size_t>(high)]};
}

}  // namespace diapason
