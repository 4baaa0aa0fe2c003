#include "base/sign_flip.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>

#include "base/stats.h"

namespace diapason {
namespace {

constexpr double kMostWeight = 1.5;  // of one block, in medians
constexpr double kLevel = 0.025;     // of each end of the interval

// Magnitudes as they count.
std::vector<double> Weights(const std::vector<double>& gains) {
  std::vector<double> weights;
  weights.reserve(gains.size());
  for (const double gain : gains) weights.push_back(std::fabs(gain));
  const double most = kMostWeight * Median(weights);
  // Where more than half of them are nothing, the others still count.
  for (double& weight : weights) weight = most > 0 ? std::min(weight, most) : weight;
  return weights;
}

// The sums of all sign vectors; bit j of the index: block j counts as a gain.
std::vector<double> Sums(const std::vector<double>& weights) {
  double lowest = 0;
  for (const double weight : weights) lowest -= weight;
  std::vector<double> sums{lowest};
  sums.reserve(size_t{1} << weights.size());
  for (const double weight : weights) {
    const size_t count = sums.size();
    for (size_t i = 0; i < count; ++i) sums.push_back(sums[i] + 2 * weight);
  }
  return sums;
}

size_t SignsOf(const std::vector<double>& gains) {
  size_t signs = 0;
  for (size_t j = 0; j < gains.size(); ++j) {
    if (gains[j] > 0) signs |= size_t{1} << j;
  }
  return signs;
}

// Sums that differ by less are equal: they were added up in another order.
double Tiny(const std::vector<double>& sums) { return 1e-9 * std::fabs(sums.back()) + 1e-300; }

double ShareAsLarge(const std::vector<double>& sums, double ours, double tiny) {
  size_t as_large = 0;
  for (const double sum : sums) as_large += sum >= ours - tiny ? 1 : 0;
  return static_cast<double>(as_large) / static_cast<double>(sums.size());
}

}  // namespace

double SignFlipP(const std::vector<double>& log_gains) {
  assert(!log_gains.empty() && log_gains.size() <= SignFlipTest::kMostBlocks);
  const std::vector<double> sums = Sums(Weights(log_gains));
  return ShareAsLarge(sums, sums[SignsOf(log_gains)], Tiny(sums));
}

SignFlipTest::SignFlipTest(double alpha, int most)
    : alpha_(alpha), most_(most), rejected_(1, uint8_t{0}) {
  assert(alpha > 0 && alpha < 1 && most >= 1 && most <= kMostBlocks);
}

int SignFlipTest::LeastBlocks(double alpha, int most) {
  for (int k = 1; k <= most; ++k) {
    if (std::floor(alpha * k / most * std::ldexp(1.0, k) * (1 + 1e-12)) >= 1) return k;
  }
  return most + 1;
}

bool SignFlipTest::Add(double log_gain) {
  assert(blocks() < most_);
  gains_.push_back(log_gain);
  const size_t seen = SignsOf(gains_);
  // What was rejected stays so, whatever the new sign.
  std::vector<uint8_t> doubled;
  doubled.reserve(2 * rejected_.size());
  doubled.insert(doubled.end(), rejected_.begin(), rejected_.end());
  doubled.insert(doubled.end(), rejected_.begin(), rejected_.end());
  rejected_ = std::move(doubled);
  rejected_count_ *= 2;

  const std::vector<double> sums = Sums(Weights(gains_));
  const double ours = sums[seen];
  const double tiny = Tiny(sums);
  p_ = ShareAsLarge(sums, ours, tiny);

  const double share = alpha_ * blocks() / most_;
  const auto may =
      static_cast<size_t>(std::floor(share * static_cast<double>(sums.size()) * (1 + 1e-12)));
  if (may <= rejected_count_) return false;
  const size_t room = may - rejected_count_;
  std::vector<double> left;
  left.reserve(sums.size() - rejected_count_);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (rejected_[i] == 0) left.push_back(sums[i]);
  }
  // The largest `room` of them, without those that are as large as the first that has no room.
  double bar = -tiny;
  if (room < left.size()) {
    std::nth_element(left.begin(), left.begin() + static_cast<ptrdiff_t>(room), left.end(),
                     std::greater<>());
    bar = left[room];
  }
  bool rejects = false;
  for (size_t i = 0; i < sums.size(); ++i) {
    if (rejected_[i] != 0 || sums[i] <= bar + tiny) continue;
    rejected_[i] = 1;
    ++rejected_count_;
    rejects = rejects || i == seen;
  }
  return rejects;
}

ShiftEstimate EstimateShift(const std::vector<double>& results) {
  assert(!results.empty());
  std::vector<double> averages;
  const size_t n = results.size();
  averages.reserve(n * (n + 1) / 2);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) averages.push_back((results[i] + results[j]) / 2);
  }
  std::sort(averages.begin(), averages.end());
  // The distribution of the rank sum under fair signs: every rank is in it or not.
  std::vector<double> ways(averages.size() + 1, 0.0);
  ways[0] = 1;
  for (size_t rank = 1; rank <= n; ++rank) {
    for (size_t sum = averages.size(); sum >= rank; --sum)
      ways[sum] = (ways[sum] + ways[sum - rank]) / 2;
    for (size_t sum = 0; sum < rank; ++sum) ways[sum] /= 2;
  }
  size_t cut = 0;
  for (double below = ways[0]; below <= kLevel && cut + 1 < averages.size() / 2;
       below += ways[cut]) {
    ++cut;
  }
  const size_t index = cut == 0 ? 0 : cut - 1;
  return {Median(averages), averages[index], averages[averages.size() - 1 - index]};
}

}  // namespace diapason
