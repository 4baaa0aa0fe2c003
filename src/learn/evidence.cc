#include "learn/evidence.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/stats.h"

namespace diapason::learn {
namespace {

constexpr double kFarthest = 3;  // in sigma
constexpr size_t kMostBlocks = 64;
constexpr double kMostFreedom = 400;
constexpr double kLeastSigma = 0.002;
constexpr double kWidest = 1;

// The sums of weighted values and of weights. With three blocks or more, outliers are limited to
// the noise around their median.
template <typename Blocks>
std::pair<double, double> Pooled(const Blocks& blocks, double sigma) {
  double middle = 0;
  double reach = INFINITY;
  if (blocks.size() >= 3) {
    std::vector<double> values;
    values.reserve(blocks.size());
    for (const auto& block : blocks) values.push_back(block.log_ratio);
    middle = Median(std::move(values));
    reach = kFarthest * sigma;
  }
  double sum = 0;
  double weights = 0;
  for (const auto& block : blocks) {
    const double limit = reach / std::sqrt(block.weight);
    sum += block.weight * (middle + std::clamp(block.log_ratio - middle, -limit, limit));
    weights += block.weight;
  }
  return {sum, weights};
}

}  // namespace

void CallNoise::Add(double square, double weight) {
  const double limit = kFarthest * kFarthest * sum_ / count_;
  sum_ += std::min(square * weight, limit);
  count_ += 1;
  // The noise of a machine changes: old observations lose weight.
  if (count_ > kMostFreedom) {
    sum_ /= 2;
    count_ /= 2;
  }
}

double CallNoise::sigma() const { return std::max(kLeastSigma, std::sqrt(sum_ / count_)); }

void Comparisons::Add(size_t arm, size_t other, double log_ratio, double weight) {
  std::deque<Block>& blocks = pairs_[{arm, other}];
  if (blocks.size() == kMostBlocks) blocks.pop_front();
  blocks.push_back({log_ratio, weight});
}

void Comparisons::Clear() { pairs_.clear(); }

void Comparisons::Solve(size_t arms, const CallNoise& noise) {
  // The normal equations of all arms except 0, with a weak prior that ratios are within a factor of
  // e of 1.
  const double square = noise.sigma() * noise.sigma();
  const size_t size = arms - 1;
  blocks_.assign(arms, 0);
  weight_.assign(arms, 0);
  std::vector<std::vector<double>> matrix(size, std::vector<double>(size, 0));
  std::vector<double> right(size, 0);
  for (size_t i = 0; i < size; ++i) matrix[i][i] = square / (kWidest * kWidest);
  for (const auto& [pair, blocks] : pairs_) {
    const auto [arm, other] = pair;
    if (arm >= arms || other >= arms) continue;
    const auto [sum, weight] = Pooled(blocks, noise.sigma());
    for (const size_t i : {arm, other}) {
      blocks_[i] += blocks.size();
      weight_[i] += weight;
    }
    if (arm > 0) {
      matrix[arm - 1][arm - 1] += weight;
      right[arm - 1] += sum;
    }
    if (other > 0) {
      matrix[other - 1][other - 1] += weight;
      right[other - 1] -= sum;
    }
    if (arm > 0 && other > 0) {
      matrix[arm - 1][other - 1] -= weight;
      matrix[other - 1][arm - 1] -= weight;
    }
  }
  // Inverted in place; the matrix is symmetric and positive definite, so no pivoting is needed.
  for (size_t pivot = 0; pivot < size; ++pivot) {
    const double scale = 1 / matrix[pivot][pivot];
    matrix[pivot][pivot] = 1;
    for (double& value : matrix[pivot]) value *= scale;
    for (size_t row = 0; row < size; ++row) {
      const double factor = matrix[row][pivot];
      if (row == pivot || factor == 0) continue;
      matrix[row][pivot] = 0;
      for (size_t i = 0; i < size; ++i) matrix[row][i] -= factor * matrix[pivot][i];
    }
  }
  mean_.assign(arms, 0);
  variance_.assign(arms, std::vector<double>(arms, 0));
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < size; ++j) {
      mean_[i + 1] += matrix[i][j] * right[j];
      variance_[i + 1][j + 1] = square * matrix[i][j];
    }
  }
}

double Comparisons::Mean(size_t arm, size_t other) const {
  if (arm >= mean_.size() || other >= mean_.size()) return 0;
  return mean_[arm] - mean_[other];
}

double Comparisons::Error(size_t arm, size_t other) const {
  if (arm >= mean_.size() || other >= mean_.size()) return INFINITY;
  const double variance = variance_[arm][arm] + variance_[other][other] - 2 * variance_[arm][other];
  return std::sqrt(std::max(variance, 0.0));
}

}  // namespace diapason::learn
