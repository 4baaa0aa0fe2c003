#pragma once

#include <utility>
#include <vector>

namespace diapason {

// Statistics of samples: means, order statistics, robust scale. Samples that are sorted are passed
// by value. base/normal.h has distributions, base/sign_flip.h a test of paired differences.

// Linear interpolation between the two nearest samples; `share` in [0, 1].
// REQUIRES: samples is not empty.
double Quantile(std::vector<double> samples, double share);
inline double Median(std::vector<double> samples) { return Quantile(std::move(samples), 0.5); }

// The median, or the lower of the two middle samples: robust for times, where disturbances only
// add. REQUIRES: samples is not empty.
double LowerMedian(std::vector<double> samples);

// REQUIRES: samples is not empty.
double Mean(const std::vector<double>& samples);
// 1 for none. REQUIRES: samples are positive.
double GeometricMean(const std::vector<double>& samples);

// A normal distribution's standard deviation over its median absolute deviation.
inline constexpr double kMadToDeviation = 1.4826;
// The standard deviation, from the median absolute deviation: up to half of the samples may be
// outliers. 0 for fewer than two samples.
double RobustDeviation(std::vector<double> samples);
// The standard deviation of a sample (n - 1). REQUIRES: two samples or more.
double StandardDeviation(const std::vector<double>& samples);

// A distribution-free interval for the median (order statistics, normal approximation of the
// binomial), at 95 %.
struct Interval {
  double low = 0;
  double high = 0;
};
Interval MedianInterval95(std::vector<double> samples);

}  // namespace diapason
