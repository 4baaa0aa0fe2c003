#pragma once

#include <vector>

namespace diapason {

// Order statistics of samples: quantiles, medians and a confidence interval for the median. Samples
// are passed by value, because they are sorted.

// Linear interpolation between the two nearest samples; `share` in [0, 1].
// REQUIRES: samples is not empty.
double Quantile(std::vector<double> samples, double share);
inline double Median(std::vector<double> samples) { return Quantile(std::move(samples), 0.5); }

// The median, or the lower of the two middle samples: robust for times, where disturbances only
// add. REQUIRES: samples is not empty.
double LowerMedian(std::vector<double> samples);

// REQUIRES: samples is not empty.
double Mean(const std::vector<double>& samples);

// A distribution-free interval for the median (order statistics, normal approximation of the
// binomial), at 95 %.
struct Interval {
  double low = 0;
  double high = 0;
};
Interval MedianInterval95(std::vector<double> samples);

}  // namespace diapason
