#pragma once

#include <cstddef>
#include <vector>

namespace diapason::model {

// How far a single sample can be off, whatever the distribution: the observed deviations of all
// samples of a place from the middle of their cells, in units of the usual spread at their size.
// Hiccups and heavy tails are in it as often as they were seen.
class NoiseTail {
 public:
  enum Side { kSlow, kFast };

  NoiseTail() = default;
  // The magnitudes of deviations to each side; `samples` is how many samples they were found in.
  // `residuals` are those of samples from the mean of their cell, as large as those from the true
  // mean, in units of MeasuredConfig::scale.
  NoiseTail(std::vector<double> slow, std::vector<double> fast, size_t samples,
            std::vector<double> residuals = {});

  // The probability that a sample is off by more than this to one side: what was seen, at least
  // that of a normal distribution, and never below what this many samples can tell. A negative
  // deviation is one to the other side.
  double Beyond(Side side, double deviation) const;
  size_t samples() const { return samples_; }
  const std::vector<double>& residuals() const { return residuals_; }

 private:
  std::vector<double> deviations_[2];  // sorted
  size_t samples_ = 0;
  std::vector<double> residuals_;
};

// The rank, from 1, of the sample that stands for a cell in a test: counted from the fast end for
// what is to be beaten, from the slow end for what is to be faster. So a few disturbed samples
// cannot make a gain.
size_t TestRank(size_t samples);

// The probability that the sample of rank TestRank is off by more than `deviation` to this side:
// kSlow for the rank from the fast end, kFast for that from the slow end.
double TestTail(const NoiseTail& tail, NoiseTail::Side side, size_t samples, double deviation);

// The standard deviation of a sample from the median of those of many cells, each of `samples`
// samples: the factor by which the median of sample deviations is too small.
double MedianDeviationFactor(size_t samples);

}  // namespace diapason::model
