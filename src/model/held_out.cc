#include "model/held_out.h"

#include <algorithm>
#include <cmath>

#include "base/normal.h"
#include "base/stats.h"

namespace diapason::model {
namespace {

constexpr double kNinety = 1.6449;
// What holds before anything was hidden counts as much as this many groups.
constexpr double kUsualWorth = 3;
constexpr double kLeastTreeError = 0.03;
constexpr double kLeastFactor = 0.25;
constexpr double kMostFactor = 4;
constexpr double kLeastAlike = 0;
constexpr double kMostAlike = 0.9;
constexpr double kLeastDoubt = 1e-4;

// Between what was found in `groups` and what is usual.
double Shrunk(double found, double usual, size_t groups) {
  const auto known = static_cast<double>(groups);
  // Few of them may have missed what is far off.
  found *= StudentQuantile(0.95, known) / kNinety;
  return std::sqrt((known * found * found + kUsualWorth * usual * usual) / (known + kUsualWorth));
}

// From ranks of magnitude, so that a few large deviations do not decide: the mean product of the
// deviations, each in units of its own size and cut.
double Alike(const std::vector<HiddenCell>& cells, double factor, double tree_error) {
  double sum = 0;
  double first = 0;
  double second = 0;
  for (const HiddenCell& cell : cells) {
    const double a = std::clamp(cell.neighbours / (factor * cell.doubt), -3.0, 3.0);
    const double b = std::clamp(cell.trees / tree_error, -3.0, 3.0);
    sum += a * b;
    first += a * a;
    second += b * b;
  }
  const double scale = std::sqrt(first * second);
  return scale > 0 ? std::clamp(sum / scale, kLeastAlike, kMostAlike) : 0.5;
}

}  // namespace

double NinetyPercentDeviation(std::vector<double> values) {
  if (values.empty()) return 0;
  for (double& value : values) value = std::fabs(value);
  return Quantile(std::move(values), 0.9) / kNinety;
}

HeldOut::HeldOut(const std::vector<HiddenCell>& cells, size_t groups, double tree_error)
    : tree_error_(tree_error) {
  if (cells.empty() || groups == 0) return;
  std::vector<double> neighbours;
  std::vector<double> trees;
  for (const HiddenCell& cell : cells) {
    neighbours.push_back(cell.neighbours / std::max(kLeastDoubt, cell.doubt));
    trees.push_back(cell.trees);
  }
  factor_ =
      std::clamp(Shrunk(NinetyPercentDeviation(neighbours), 1, groups), kLeastFactor, kMostFactor);
  tree_error_ =
      std::max(kLeastTreeError, Shrunk(NinetyPercentDeviation(trees), tree_error, groups));
  alike_ = Alike(cells, factor_, tree_error_);
  std::vector<double> both;
  for (const HiddenCell& cell : cells) {
    const Estimate mixed =
        Mix(cell.neighbours, factor_ * std::max(kLeastDoubt, cell.doubt), cell.trees, tree_error_);
    both.push_back(mixed.log_seconds / mixed.doubt);
  }
  whole_ = std::clamp(Shrunk(NinetyPercentDeviation(both), 1, groups), kLeastFactor, kMostFactor);
}

Estimate HeldOut::Mix(double a, double a_doubt, double b, double b_doubt) const {
  // The least variance of a weighted mean of two that err alike; neither counts negatively.
  const double covariance = alike_ * a_doubt * b_doubt;
  const double first = std::max(0.0, b_doubt * b_doubt - covariance);
  const double second = std::max(0.0, a_doubt * a_doubt - covariance);
  const double weight = first + second > 0 ? first / (first + second) : 0.5;
  const double one = weight * a_doubt;
  const double other = (1 - weight) * b_doubt;
  return {weight * a + (1 - weight) * b,
          whole_ * std::sqrt(one * one + other * other + 2 * alike_ * one * other)};
}

Estimate HeldOut::Combine(const Estimate& neighbours, double trees, double unseen) const {
  return Mix(neighbours.log_seconds, factor_ * std::max(kLeastDoubt, neighbours.doubt), trees,
             unseen * tree_error_);
}

}  // namespace diapason::model
