#pragma once

#include <cstddef>
#include <vector>

// How much the time of one call differs between two sets of launches. Pure: no files, no clock.
//
// Launches of the same program differ by more than the samples inside them show: placement,
// connections, neighbours. So the launch is the unit of the statistics: the median of its samples
// is one figure. The change is the difference of the mean logarithms of these figures, its interval
// is Student's, and the variance between launches is estimated from the launches of both sides
// together. From kLeastTrimmed launches on, a fifth at each end is trimmed: single launches that
// were disturbed do not decide. An assumed spread (kAssumedSpread) counts as much as
// kAssumedFreedom further observations of that variance where these make it larger: it decides
// where each side has one launch, keeps a few launches that agree by luck from saying too much, and
// fades with every launch more.
namespace diapason::compare {

// The standard deviation of the logarithm of a launch's time that is assumed before any two
// launches have been seen: the spread that `diapason tune` assumes for the gain of one launch
// (job_tune::PooledGain::kAssumedSpread).
inline constexpr double kAssumedSpread = 0.03;
inline constexpr double kAssumedFreedom = 2;
// Launches that take turns are compared in pairs from this many on: fewer pairs say less about
// their spread than launches that are not paired.
inline constexpr size_t kLeastPairs = 10;

inline constexpr size_t kLeastTrimmed = 8;

// What one launch says about one call.
struct LaunchFigure {
  double log_seconds = 0;  // the median of its samples
  // Of the median, by the medians of up to ten consecutive blocks of samples, so that neighbouring
  // samples may depend on each other; 0 where there is one sample.
  double variance = 0;
  size_t samples = 0;
  double least = 0;  // seconds
  double most = 0;
  double started = 0;  // of the launch, seconds since 1970; 0: not known
};

// `seconds`: in the order of measurement; `coarse`: half of the last printed digit as a share of
// the value. REQUIRES: not empty, all positive.
LaunchFigure FigureOf(const std::vector<double>& seconds, double coarse, double started);

// Whether the launches of both sides took turns: as many of each, at least kLeastPairs, all with
// different times of start, and each pair in a row has one of each.
bool TakeTurns(const std::vector<LaunchFigure>& before, const std::vector<LaunchFigure>& after);

struct Change {
  double old_seconds = 0;  // the median over the launches
  double new_seconds = 0;
  size_t old_launches = 0;
  size_t new_launches = 0;
  size_t old_samples = 0;
  size_t new_samples = 0;
  double log_change = 0;
  // The error of log_change and its degrees of freedom; freedom 0: there is no interval, because
  // each side has one launch of fewer than six samples.
  double error = 0;
  double freedom = 0;
  bool paired = false;
  bool assumed = false;  // one launch on each side: only the assumed spread says how they differ
  // The least and the most that the samples allow, where there is no interval and more than one
  // sample: a range, of no known probability.
  bool has_range = false;
  double range_low = 0;
  double range_high = 0;

  bool has_interval() const { return freedom > 0; }
  // Shares: 0.1 is 10 % slower. The interval is of 95 %. REQUIRES: has_interval() for the last two.
  double share() const;
  double low() const;
  double high() const;
  // The probability of a change at least this far from none, were there none; 1 without interval.
  double PValue() const;
  // The same of a change this large, were it not larger than `limit` (a share).
  double PValueAbove(double limit) const;
};

// REQUIRES: neither is empty.
Change EstimateChange(std::vector<LaunchFigure> before, std::vector<LaunchFigure> after);

// Holm's correction for many comparisons: each p-value as it would be if it were the only one. It
// holds however the comparisons depend on each other.
std::vector<double> HolmAdjusted(const std::vector<double>& p_values);

}  // namespace diapason::compare
