#include "model/cell_noise.h"

#include <algorithm>
#include <cmath>

#include "base/stats.h"

namespace diapason::model {
namespace {

// The weight of the pooled spread, in repeats; and of the place's at one size, in cells.
constexpr double kBorrowedRepeats = 4;
constexpr double kBorrowedCells = 4;
// The standard error of a median relative to that of the mean.
constexpr double kMedianFactor = 1.2533;
constexpr double kLeastNoise = 1e-4;

// Estimates the noise of single measurements without repeats: their distance from the line between
// their neighbours in size.
double Roughness(const std::vector<std::vector<RawCell>>& contexts) {
  std::vector<double> off;
  const auto find = [](const std::vector<RawCell>& cells,
                       const Config& config) -> const MeasuredConfig* {
    for (const RawCell& raw : cells) {
      if (raw.cell.config == config) return &raw.cell;
    }
    return nullptr;
  };
  for (size_t i = 1; i + 1 < contexts.size(); ++i) {
    // The curvature that all configurations share is removed with their median.
    std::vector<double> bends;
    for (const RawCell& raw : contexts[i]) {
      const MeasuredConfig* const before = find(contexts[i - 1], raw.cell.config);
      const MeasuredConfig* const after = find(contexts[i + 1], raw.cell.config);
      if (before == nullptr || after == nullptr) continue;
      bends.push_back(raw.cell.log_seconds - (before->log_seconds + after->log_seconds) / 2);
    }
    if (bends.size() < 3) continue;
    const double middle = Median(bends);
    for (const double bend : bends) off.push_back(std::fabs(bend - middle));
  }
  // The median of |x| is 0.674 standard deviations; three values with these weights add up to 1.22.
  return off.empty() ? 0.03 : std::max(0.005, Median(off) / 0.674 / 1.22);
}

// The standard deviation of a sample, from cells with repeats; the middle of many, so that a few
// hiccups do not count. Nothing: 0 cells.
double UsualSpread(const std::vector<RawCell>& cells, size_t* count) {
  std::vector<double> spreads;
  for (const RawCell& raw : cells) {
    if (raw.cell.samples > 1) {
      spreads.push_back(raw.spread / MedianDeviationFactor(raw.cell.samples));
    }
  }
  *count = spreads.size();
  return spreads.empty() ? 0 : Median(spreads);
}

// The usual spread at one size, combined with that of the place.
double LocalSpread(const std::vector<RawCell>& cells, double usual) {
  size_t count = 0;
  const double here = UsualSpread(cells, &count);
  const auto known = static_cast<double>(count);
  return std::sqrt((kBorrowedCells * usual * usual + known * here * here) /
                   (kBorrowedCells + known));
}

}  // namespace

NoiseTail SetNoise(std::vector<std::vector<RawCell>>* contexts) {
  std::vector<RawCell> all;
  for (const auto& cells : *contexts) all.insert(all.end(), cells.begin(), cells.end());
  size_t repeated = 0;
  double usual = UsualSpread(all, &repeated);
  if (repeated == 0) usual = Roughness(*contexts);
  std::vector<double> slow;
  std::vector<double> fast;
  std::vector<double> residuals;
  size_t seen = 0;
  for (auto& cells : *contexts) {
    const double local = LocalSpread(cells, usual);
    for (RawCell& raw : cells) {
      MeasuredConfig& cell = raw.cell;
      const auto samples = static_cast<double>(cell.samples);
      const double variance =
          (kBorrowedRepeats * local * local + (samples - 1) * raw.spread * raw.spread) /
          (kBorrowedRepeats + samples - 1);
      const double own =
          samples > 1 ? kMedianFactor * kMedianFactor * variance / samples : variance;
      // Rounding error: uniform within the last digit.
      const double rounding = cell.coarse * cell.coarse / 3;
      cell.noise = std::max(kLeastNoise, std::sqrt(own + rounding));
      cell.scale = std::max(kLeastNoise, std::sqrt(std::max(local * local, variance) + rounding));
      if (cell.samples < 2) continue;
      const double unit = std::max(kLeastNoise, std::sqrt(local * local + rounding));
      const double mean = Mean(raw.logs);
      for (const double log : raw.logs) {
        residuals.push_back((log - mean) / cell.scale * std::sqrt(samples / (samples - 1)));
      }
      const double middle = raw.logs[(raw.logs.size() - 1) / 2];
      for (const double log : raw.logs) {
        if (log == middle) continue;
        // Two samples do not show which of them is off.
        if (log > middle || cell.samples == 2) slow.push_back(std::fabs(log - middle) / unit);
        if (log < middle || cell.samples == 2) fast.push_back(std::fabs(log - middle) / unit);
      }
      seen += cell.samples;
    }
  }
  return {std::move(slow), std::move(fast), seen, std::move(residuals)};
}

}  // namespace diapason::model
