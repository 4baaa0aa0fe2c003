// What an experiment says of its figures: noise, what can be found, and the validation.

#include <algorithm>
#include <cmath>

#include "base/normal.h"
#include "base/stats.h"
#include "env_tune/experiment.h"

namespace diapason::env_tune {
namespace {

constexpr double kPower80 = 0.8416;       // the normal quantile of four of five
constexpr double kMedianFactor = 1.2533;  // a median's standard error over a mean's
constexpr double kNegligible = 0.02;

// From one run to the next: a slow drift hardly adds to it.
double StepDeviation(const std::vector<double>& values) {
  std::vector<double> steps;
  for (size_t i = 1; i < values.size(); ++i) steps.push_back(std::fabs(values[i] - values[i - 1]));
  return steps.empty() ? 0 : kMadToDeviation * Median(steps) / std::sqrt(2.0);
}

}  // namespace

double Experiment::Noise() const {
  std::vector<double> differences;
  for (const KnobComparison& comparison : comparisons_) {
    if (comparison.gains.size() < 3) continue;
    const double middle = Median(comparison.gains);
    for (const double gain : comparison.gains) differences.push_back(std::fabs(gain - middle));
  }
  if (!differences.empty()) {
    const double runs = static_cast<double>(RunsOfBlock());
    return kMadToDeviation * Median(differences) * std::sqrt(runs / 4);
  }
  std::vector<double> logs;
  logs.reserve(baseline_.size());
  for (const RunFigure& figure : baseline_) logs.push_back(std::log(figure.value));
  return RobustDeviation(logs);
}

double Experiment::Detectable(double noise) const {
  const double share =
      options_.alpha / static_cast<double>(std::max<size_t>(1, candidates_.size()));
  const double of_block = noise * std::sqrt(4.0 / RunsOfBlock());
  const double needed = (NormalTailQuantile(share) + kPower80) * of_block /
                        std::sqrt(static_cast<double>(options_.most_blocks));
  return std::max(std::expm1(needed), options_.min_gain);
}

void Experiment::FinishValidation() {
  over_ = true;
  validation_.complete = true;
  // One look at the end: the whole level is for it.
  validation_.p = SignFlipP(validation_.gains);
  validation_.shift = EstimateShift(validation_.gains);
  validation_.confirmed = validation_.p <= options_.alpha &&
                          std::expm1(validation_.shift.estimate) >= options_.min_gain;
  const auto logs = [](const std::vector<RunFigure>& runs) {
    std::vector<double> values;
    values.reserve(runs.size());
    for (const RunFigure& run : runs) values.push_back(std::log(run.value));
    return values;
  };
  const auto drift = [](const std::vector<double>& values) {
    const auto half = static_cast<ptrdiff_t>(values.size() / 2);
    return Median({values.end() - half, values.end()}) -
           Median({values.begin(), values.begin() + half});
  };
  const std::vector<double> tuned = logs(treated_);
  const std::vector<double> plain = logs(untreated_);
  validation_.drift_tuned = drift(tuned);
  validation_.drift_default = drift(plain);
  validation_.spread_tuned = RobustDeviation(tuned);
  validation_.spread_default = RobustDeviation(plain);
  // What two medians of n/2 runs differ by anyhow, three times; and a difference that does not
  // matter.
  const double noise = std::max(StepDeviation(tuned), StepDeviation(plain));
  const double halves = static_cast<double>(tuned.size()) / 2;
  const double chance = 3 * kMedianFactor * noise * std::sqrt(4 / halves);
  const double change = validation_.drift_tuned - validation_.drift_default;
  validation_.drifts = std::fabs(change) > std::max(kNegligible, chance);
  validation_.spread_worse =
      validation_.spread_tuned > std::max(kNegligible, 2 * validation_.spread_default);
}

}  // namespace diapason::env_tune
