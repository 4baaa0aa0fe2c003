#include "compare/change.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/interval_text.h"
#include "base/normal.h"
#include "base/stats.h"

namespace diapason::compare {
namespace {

constexpr size_t kMostBlocks = 10;
constexpr double kTail = 0.025;
// A median has a larger error than a mean, by this factor for normal noise.
constexpr double kMedianError = 1.2533;
// Launches that agree to the last digit say no more than this.
constexpr double kLeastError = 1e-6;

double Square(double value) { return value * value; }

std::vector<double> BlockMedians(const std::vector<double>& logs) {
  const size_t blocks = std::min(kMostBlocks, logs.size());
  std::vector<double> medians;
  for (size_t i = 0; i < blocks; ++i) {
    const auto first = logs.begin() + static_cast<ptrdiff_t>(i * logs.size() / blocks);
    const auto last = logs.begin() + static_cast<ptrdiff_t>((i + 1) * logs.size() / blocks);
    medians.push_back(Median({first, last}));
  }
  return medians;
}

std::vector<double> LogsOf(const std::vector<LaunchFigure>& launches) {
  std::vector<double> logs;
  for (const LaunchFigure& one : launches) logs.push_back(one.log_seconds);
  return logs;
}

// The trimmed mean of figures and what its error is computed from (Yuen and Dixon): the squares of
// the distances from the mean after winsorising, and the number of figures that are left.
struct Trimmed {
  double mean = 0;
  double squares = 0;
  double count = 0;
};

Trimmed TrimmedOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t cut = values.size() < kLeastTrimmed ? 0 : values.size() / 5;
  const std::vector<double> kept(values.begin() + static_cast<ptrdiff_t>(cut),
                                 values.end() - static_cast<ptrdiff_t>(cut));
  for (double& value : values) value = std::clamp(value, kept.front(), kept.back());
  Trimmed trimmed;
  trimmed.mean = Mean(kept);
  trimmed.count = static_cast<double>(kept.size());
  const double middle = Mean(values);
  for (const double value : values) trimmed.squares += Square(value - middle);
  return trimmed;
}

// What is assumed about the variance of one launch's figure: the spread between launches, and the
// error of its median.
double AssumedVariance(const std::vector<LaunchFigure>& before,
                       const std::vector<LaunchFigure>& after) {
  double inside = 0;
  for (const std::vector<LaunchFigure>* side : {&before, &after}) {
    for (const LaunchFigure& one : *side) inside += one.variance;
  }
  return Square(kAssumedSpread) + inside / static_cast<double>(before.size() + after.size());
}

void SortByStart(std::vector<LaunchFigure>* launches) {
  std::stable_sort(
      launches->begin(), launches->end(),
      [](const LaunchFigure& a, const LaunchFigure& b) { return a.started < b.started; });
}

// The variance of a unit, launch or pair, from the squares of their distances from the mean and
// what is assumed. The assumed spread makes it larger, never smaller than the launches show: they
// may differ by more. Returns the degrees of freedom.
double PooledVariance(double squares, double freedom, double assumed, double* variance) {
  const double with_assumed = (kAssumedFreedom * assumed + squares) / (kAssumedFreedom + freedom);
  *variance = freedom > 0 ? std::max(squares / freedom, with_assumed) : with_assumed;
  return std::max(freedom, kAssumedFreedom);
}

void SetPaired(const std::vector<LaunchFigure>& before, const std::vector<LaunchFigure>& after,
               Change* change) {
  std::vector<double> differences;
  for (size_t i = 0; i < before.size(); ++i) {
    differences.push_back(after[i].log_seconds - before[i].log_seconds);
  }
  const Trimmed trimmed = TrimmedOf(differences);
  double variance = 0;
  change->freedom = PooledVariance(trimmed.squares, trimmed.count - 1,
                                   2 * AssumedVariance(before, after), &variance);
  change->log_change = trimmed.mean;
  change->error = std::max(std::sqrt(variance / trimmed.count), kLeastError);
  change->paired = true;
}

void SetUnpaired(const std::vector<LaunchFigure>& before, const std::vector<LaunchFigure>& after,
                 Change* change) {
  const Trimmed of_old = TrimmedOf(LogsOf(before));
  const Trimmed of_new = TrimmedOf(LogsOf(after));
  change->log_change = of_new.mean - of_old.mean;
  const bool one_each = before.size() == 1 && after.size() == 1;
  if (one_each && !(HasInterval95(before[0].samples) && HasInterval95(after[0].samples))) return;
  change->assumed = one_each;
  double variance = 0;
  change->freedom = PooledVariance(of_old.squares + of_new.squares, of_old.count + of_new.count - 2,
                                   AssumedVariance(before, after), &variance);
  change->error =
      std::max(std::sqrt(variance * (1 / of_old.count + 1 / of_new.count)), kLeastError);
}

void SetRange(const std::vector<LaunchFigure>& before, const std::vector<LaunchFigure>& after,
              Change* change) {
  if (change->has_interval() || change->old_samples + change->new_samples < 3) return;
  const LaunchFigure& one = before[0];
  const LaunchFigure& other = after[0];
  change->has_range = true;
  change->range_low = other.least / one.most - 1;
  change->range_high = other.most / one.least - 1;
}

}  // namespace

LaunchFigure FigureOf(const std::vector<double>& seconds, double coarse, double started) {
  std::vector<double> logs;
  for (const double one : seconds) logs.push_back(std::log(one));
  LaunchFigure figure;
  figure.log_seconds = Median(logs);
  const std::vector<double> blocks = BlockMedians(logs);
  if (blocks.size() > 1) {
    figure.variance =
        Square(kMedianError * StandardDeviation(blocks)) / static_cast<double>(blocks.size());
  }
  // A value that was rounded lies anywhere within half a digit.
  figure.variance = std::max(figure.variance, Square(coarse) / 3);
  figure.samples = seconds.size();
  figure.least = *std::min_element(seconds.begin(), seconds.end());
  figure.most = *std::max_element(seconds.begin(), seconds.end());
  figure.started = started;
  return figure;
}

bool TakeTurns(const std::vector<LaunchFigure>& before, const std::vector<LaunchFigure>& after) {
  if (before.size() != after.size() || before.size() < kLeastPairs) return false;
  std::vector<std::pair<double, bool>> order;
  for (const LaunchFigure& one : before) order.emplace_back(one.started, false);
  for (const LaunchFigure& one : after) order.emplace_back(one.started, true);
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) {
    if (!(order[i].first > 0)) return false;
    if (i > 0 && order[i].first == order[i - 1].first) return false;
    if (i % 2 == 1 && order[i].second == order[i - 1].second) return false;
  }
  return true;
}

double Change::share() const { return std::expm1(log_change); }
double Change::low() const {
  return std::expm1(log_change - error * StudentTailQuantile(kTail, freedom));
}
double Change::high() const {
  return std::expm1(log_change + error * StudentTailQuantile(kTail, freedom));
}
double Change::PValue() const {
  if (!has_interval()) return 1;
  return std::min(1.0, 2 * StudentTail(std::fabs(log_change) / error, freedom));
}
double Change::PValueAbove(double limit) const {
  if (!has_interval()) return 1;
  return StudentTail((log_change - std::log1p(limit)) / error, freedom);
}

Change EstimateChange(std::vector<LaunchFigure> before, std::vector<LaunchFigure> after) {
  SortByStart(&before);
  SortByStart(&after);
  Change change;
  change.old_launches = before.size();
  change.new_launches = after.size();
  for (const LaunchFigure& one : before) change.old_samples += one.samples;
  for (const LaunchFigure& one : after) change.new_samples += one.samples;
  change.old_seconds = std::exp(Median(LogsOf(before)));
  change.new_seconds = std::exp(Median(LogsOf(after)));
  if (TakeTurns(before, after)) {
    SetPaired(before, after, &change);
  } else {
    SetUnpaired(before, after, &change);
    SetRange(before, after, &change);
  }
  return change;
}

std::vector<double> HolmAdjusted(const std::vector<double>& p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size(), 1);
  double reached = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(order.size() - i);
    reached = std::max(reached, std::min(1.0, left * p_values[order[i]]));
    adjusted[order[i]] = reached;
  }
  return adjusted;
}

}  // namespace diapason::compare
