// How the Gaussian process learns its kernel parameters, and which samples it trusts.
#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/random.h"
#include "base/stats.h"
#include "search/gaussian_process.h"

namespace diapason::search {
namespace {

// Observations that learning the kernel parameters uses.
constexpr size_t kMostLearned = 96;
// A residual of so many standard deviations counts as a disturbance until another sample confirms
// it. Disturbances make calls slower; a fast outlier needs a larger residual.
constexpr double kTooSlow = 3;
constexpr double kTooFast = 5;
// The noise of a disturbed sample is this multiple of the noise that would just explain it.
constexpr double kDistrust = 3;
// The prior of the kernel parameters: one standard deviation of their logarithms around the usual
// values; and the steps of the search for better ones.
constexpr KernelParams kUsualWidth = {1.0, 0.7, 0.7, 1.0, 0.8, 0.5, 0.1};
constexpr KernelParams kStep = {0.5, 0.4, 0.4, 0.7, 0.4, 0.4, 0.07};

}  // namespace

KernelParams UsualShape() {
  return {std::log(0.7), std::log(4.0), std::log(2.0), 0, std::log(0.02), std::log(0.01), 0};
}

void GaussianProcess::Take(const SamplesByCandidate& known) {
  observed_.clear();
  std::vector<double> values;
  deviations_.clear();
  for (uint32_t i = 0; i < cells_.size(); ++i) {
    const CandidateSamples& evidence = known[cells_[i].call_case][cells_[i].candidate];
    if (evidence.seconds.empty() || evidence.outcome != dataset::SampleOutcome::kFine) continue;
    std::vector<double> logs;
    for (const double seconds : evidence.seconds) logs.push_back(std::log(seconds));
    Observation one;
    one.cell = i;
    one.value = LowerMedian(logs);
    const auto count = static_cast<double>(logs.size());
    // The median of many normal samples has a larger variance than their mean, by this factor.
    one.noise = logs.size() < 3 ? 1 / count : 0.5 * std::numbers::pi / count;
    one.confirmed = logs.size() >= 2;
    if (logs.size() >= 2) {
      const double middle = Median(logs);
      // Residuals around the samples' own centre are smaller than those around the true one.
      const double small = std::sqrt(count / (count - 1));
      for (const double value : logs) {
        deviations_.emplace_back(std::abs(value - middle) * small, cells_[i].size);
      }
    }
    observed_.push_back(one);
    values.push_back(one.value);
  }
  centre_ = values.empty() ? 0 : Median(values);
  for (Observation& one : observed_) one.value -= centre_;
}

// The log likelihood of the observations under kernel parameters, plus the log prior of those.
double GaussianProcess::Score(const KernelParams& candidate, const std::vector<uint32_t>& subset) {
  SetShape(candidate);
  const KernelParams usual = UsualShape();
  double score = 0;
  for (int i = 0; i < kParameters; ++i) {
    const double off = (candidate[i] - usual[i]) / kUsualWidth[i];
    score -= off * off / 2;
  }
  // Repeated samples of one candidate estimate the noise best.
  if (!deviations_.empty()) {
    std::vector<double> scaled;
    for (const auto& [deviation, size] : deviations_) {
      scaled.push_back(deviation / std::sqrt(noise_table_[size]));
    }
    // Weighed like so many squared normal deviations.
    const double off = std::log(std::max(kMadToDeviation * Median(scaled), 0.1));
    score -= off * off * std::min<double>(static_cast<double>(scaled.size()), 40) / 4;
  }
  if (!Factor(subset)) return -std::numeric_limits<double>::infinity();
  const size_t n = subset.size();
  for (size_t i = 0; i < n; ++i) {
    score -= solved_[i] * solved_[i] / 2 + std::log(lower_[i * n + i]);
  }
  return score;
}

bool GaussianProcess::Factor(const std::vector<uint32_t>& subset) {
  const size_t n = subset.size();
  lower_.resize(n * n);
  solved_.resize(n);
  for (size_t j = 0; j < n; ++j) {
    const Observation& one = observed_[subset[j]];
    for (size_t i = j; i < n; ++i) {
      lower_[j * n + i] = Kernel(observed_[subset[i]].cell, one.cell);
    }
    lower_[j * n + j] += Noise(one.cell) * one.noise;
    solved_[j] = one.value;
  }
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::Map<Eigen::MatrixXd> lower(lower_.data(), size, size);
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factor(lower);
  Eigen::Map<Eigen::VectorXd> solved(solved_.data(), size);
  factor.matrixL().solveInPlace(solved);
  return factor.info() == Eigen::Success;
}

// Coordinate ascent, one parameter after the other: a few small factorisations.
void GaussianProcess::Learn(int sweeps) {
  std::vector<uint32_t> subset(observed_.size());
  std::iota(subset.begin(), subset.end(), 0);
  if (subset.size() > kMostLearned) {
    std::sort(subset.begin(), subset.end(),
              [](uint32_t a, uint32_t b) { return MixBits(a) < MixBits(b); });
    subset.resize(kMostLearned);
  }
  KernelParams best = shape_;
  double best_score = Score(best, subset);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    bool moved = false;
    for (int i = 0; i < kParameters; ++i) {
      for (const double sign : {1.0, -1.0}) {
        KernelParams next = best;
        next[i] += sign * kStep[i];
        const double score = Score(next, subset);
        if (score <= best_score) continue;
        best = next;
        best_score = score;
        moved = true;
        break;
      }
    }
    if (!moved) break;
  }
  SetShape(best);
}

// Leave-one-out residual of every observation. True if one of them is now trusted less.
bool GaussianProcess::Doubt() {
  const size_t n = observed_.size();
  std::vector<uint32_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  if (!Factor(all)) return false;
  // The columns of L^-1: their squared lengths are the diagonal of the inverse covariance.
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::MatrixXd inverse = Eigen::MatrixXd::Identity(size, size);
  Eigen::Map<const Eigen::MatrixXd>(lower_.data(), size, size)
      .triangularView<Eigen::Lower>()
      .solveInPlace(inverse);
  const Eigen::Map<const Eigen::VectorXd> solved(solved_.data(), size);
  bool any = false;
  for (size_t j = 0; j < n; ++j) {
    if (observed_[j].confirmed) continue;
    const auto column = inverse.col(static_cast<Eigen::Index>(j));
    const double square = column.squaredNorm();
    // The residual against the prediction from the other observations, and its variance.
    const double residual = column.dot(solved) / square;
    const double expected = 1 / square - Noise(observed_[j].cell) * observed_[j].noise;
    const double far = residual < 0 ? kTooFast : kTooSlow;
    if (residual * residual * square <= far * far) continue;
    const double needed = residual * residual / (far * far) - std::max(expected, 0.0);
    const double factor = std::max(needed / Noise(observed_[j].cell), 1.0) * kDistrust;
    if (factor > observed_[j].noise * 1.5) {
      observed_[j].noise = factor;
      any = true;
    }
  }
  return any;
}

void GaussianProcess::Fit(const SamplesByCandidate& known, bool learn) {
  Take(known);
  // The first ascent is long; later ones start at its result.
  if (learn) Learn(taught_ ? 2 : 4);
  taught_ = taught_ || learn;
  if (Doubt() && learn) Learn(1);
  Condition();
}

}  // namespace diapason::search
