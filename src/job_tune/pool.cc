// The gain over launches: see PooledGain.
#include <algorithm>
#include <cmath>

#include "base/normal.h"
#include "job_tune/result.h"

namespace diapason::job_tune {
namespace {

constexpr double kNormal975 = 1.959964;
// The interval has at least this many standard errors of what the turns alone say. More would make
// intervals of two launches too wide on average: these are narrow only by luck.
constexpr double kLeastErrors = 1;
constexpr double kLeastError = 1e-6;  // turns that do not differ at all say no more than this

// What one launch found.
struct Found {
  double log_gain = 0;
  double variance = 0;  // by its turns
};

double Square(double value) { return value * value; }

Found FoundBy(const job_profile::TurnComparison& compared) {
  const double error = std::log(compared.high / compared.low) / 2 / kNormal975;
  return {std::log(compared.gain), Square(std::max(error, kLeastError))};
}

// The mean, if launches differ by this variance.
struct Weighted {
  double mean = 0;
  double weights = 0;
  double surplus = 0;  // the weighted squares of what launches differ by
};
Weighted MeanOf(const std::vector<Found>& found, double between) {
  Weighted sum;
  for (const Found& one : found) {
    const double weight = 1 / (one.variance + between);
    sum.mean += weight * one.log_gain;
    sum.weights += weight;
  }
  sum.mean /= sum.weights;
  for (const Found& one : found) {
    sum.surplus += Square(one.log_gain - sum.mean) / (one.variance + between);
  }
  return sum;
}

// The variance between launches with which they differ by as much as they do (Paule and Mandel).
double BetweenOf(const std::vector<Found>& found) {
  const auto freedom = static_cast<double>(found.size() - 1);
  if (MeanOf(found, 0).surplus <= freedom) return 0;
  double low = 0;
  double high = 1e-8;
  while (MeanOf(found, high).surplus > freedom && high < 1e8) high *= 4;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (MeanOf(found, middle).surplus > freedom ? low : high) = middle;
  }
  return (low + high) / 2;
}

void SetIntervals(double mean, double half, double next_half, PooledGain* pooled) {
  pooled->gain = std::exp(mean);
  pooled->low = std::exp(mean - half);
  pooled->high = std::exp(mean + half);
  pooled->next_low = std::exp(mean - next_half);
  pooled->next_high = std::exp(mean + next_half);
}

void PoolSeveral(const std::vector<Found>& found, PooledGain* pooled) {
  const double between = BetweenOf(found);
  const Weighted all = MeanOf(found, between);
  double precision = 0;
  for (const Found& one : found) precision += 1 / one.variance;
  const auto count = static_cast<double>(found.size());
  // By what the launches differ by, not by what they are thought to (Hartung and Knapp).
  const double variance = all.surplus / (count - 1) / all.weights;
  const double least = kLeastErrors / std::sqrt(precision);
  const double student = StudentQuantile975(count - 1);
  const double half = std::max(student * std::sqrt(variance), least);
  // One more launch of the kind has `count` times the variance of their mean, and the mean has its.
  const double next = std::max(student * std::sqrt(variance * (count + 1)),
                               kLeastErrors * std::sqrt((count + 1) / precision));
  pooled->spread = std::sqrt(between);
  SetIntervals(all.mean, half, next, pooled);
}

void PoolOne(const Found& found, PooledGain* pooled) {
  pooled->spread = PooledGain::kAssumedSpread;
  const double half = kNormal975 * std::sqrt(found.variance + Square(pooled->spread));
  const double next = kNormal975 * std::sqrt(2 * (found.variance + Square(pooled->spread)));
  SetIntervals(found.log_gain, half, next, pooled);
}

}  // namespace

PooledGain PoolPairs(const std::vector<VerifyingPair>& pairs) {
  PooledGain pooled;
  pooled.by_pairs = true;
  std::vector<const VerifyingPair*> counted;
  std::vector<Found> found;
  for (const VerifyingPair& one : pairs) {
    if (!one.Decided()) {
      ++pooled.undecided;
      continue;
    }
    counted.push_back(&one);
    // What pairs differ by is all that is known about their error.
    found.push_back({std::log(one.default_seconds / one.policy_seconds), Square(kLeastError)});
  }
  pooled.launches = counted.size();
  if (counted.empty()) return pooled;
  if (found.size() == 1) {
    PoolOne(found[0], &pooled);
  } else {
    PoolSeveral(found, &pooled);
  }
  std::stable_sort(counted.begin(), counted.end(), [](const auto* a, const auto* b) {
    return a->default_seconds * b->policy_seconds < b->default_seconds * a->policy_seconds;
  });
  const VerifyingPair& middle = *counted[(counted.size() - 1) / 2];
  pooled.launch = middle.policy_launch;
  pooled.default_launch = middle.default_launch;
  pooled.default_seconds = middle.default_seconds;
  pooled.tuned_seconds = middle.policy_seconds;
  return pooled;
}

PooledGain PoolLaunches(const std::vector<VerifyingLaunch>& launches) {
  PooledGain pooled;
  std::vector<const VerifyingLaunch*> counted;
  std::vector<Found> found;
  for (const VerifyingLaunch& one : launches) {
    if (!one.compared.Decided()) {
      ++pooled.undecided;
      continue;
    }
    counted.push_back(&one);
    found.push_back(FoundBy(one.compared));
    pooled.changes += one.compared.log_gains.size();
  }
  pooled.launches = counted.size();
  if (counted.empty()) return pooled;
  if (found.size() == 1) {
    PoolOne(found[0], &pooled);
  } else {
    PoolSeveral(found, &pooled);
  }
  std::stable_sort(counted.begin(), counted.end(), [](const auto* a, const auto* b) {
    return a->compared.gain < b->compared.gain;
  });
  const VerifyingLaunch& middle = *counted[(counted.size() - 1) / 2];
  pooled.launch = pooled.default_launch = middle.launch;
  pooled.default_seconds = middle.compared.default_seconds;
  pooled.tuned_seconds = middle.compared.policy_seconds;
  return pooled;
}

}  // namespace diapason::job_tune
