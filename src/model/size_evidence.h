#pragma once

#include <map>
#include <vector>

#include "model/grid.h"

namespace diapason::model {

// Proves a gain by all sizes of a place together, where none of them proves it alone: with two
// noisy samples a cell, but a gain that lasts over sizes.
//
// The sizes are taken in order. At each, the configuration is chosen that the sizes before it
// predict to be the fastest; then its samples at this size are compared with those of the library's
// own choice. The choice depends on other sizes only, so that the luck of the best among many does
// not count, and a chain of configurations that take over from each other is one test. If nothing
// is faster, each comparison is noise whatever was chosen: the sum is compared with sums of medians
// that are drawn from the deviations of the samples of this place from their cells, so that no
// distribution is assumed. One comparison counts at most kMostScore standard errors, so that a
// disturbed size does not decide. Both orders of the sizes are tested.
//
// Draws are repeatable. The place has to outlive the object.
class SizeEvidence {
 public:
  explicit SizeEvidence(const MeasuredPlace& scene) : scene_(scene) {}

  // The p-value of "nothing is faster than the library's own choice at any size of this place"; of
  // this algorithm and protocol alone, if one is given. 1 if there are too few samples.
  double P(const ConfigFamily* family = nullptr);

 private:
  struct Comparison {
    const MeasuredConfig* own = nullptr;
    const MeasuredConfig* chosen = nullptr;
  };

  std::vector<Comparison> Compare(bool up, const ConfigFamily* family) const;
  double PairsP(const std::vector<Comparison>& pairs);
  const std::vector<double>& NoiseOfMedian(size_t samples);

  const MeasuredPlace& scene_;
  std::map<size_t, std::vector<double>> medians_;  // by the number of samples
};

}  // namespace diapason::model
