#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "search/search.h"

namespace diapason::search {

class GaussianProcess;

// What is believed about every candidate of every case, sampled or not: a Gaussian process over
// the logarithm of the time. Neighbouring sizes, neighbouring channel counts and configurations
// that share an algorithm, a protocol or an environment inform each other; how far, and how noisy a
// sample is, is learned from the samples. Contests of different operations, types or roots are
// strangers.
//
// A single sample that is far from what everything around it says counts little until a second one
// confirms it: noise on clusters has jumps.
class Surrogate {
 public:
  explicit Surrogate(const std::vector<CallCase>& call_cases);
  ~Surrogate();
  Surrogate(const Surrogate&) = delete;
  Surrogate& operator=(const Surrogate&) = delete;

  // Takes in everything that is known, and learns afresh how far samples inform each other where
  // `learn`. Forgets what was expected.
  void Fit(const SamplesByCandidate& known, bool learn);

  // Of the logarithm of the seconds. The variance is that of the candidate's own median, without
  // the noise of a sample.
  double Mean(size_t call_case, size_t candidate) const;
  double Variance(size_t call_case, size_t candidate) const;
  // The variance of the difference of two candidates.
  double DifferenceVariance(size_t call_case, size_t a, size_t b) const;
  // The variance of one sample around the candidate's median.
  double Noise(size_t call_case, size_t candidate) const;

  // A sample of this candidate is on its way: the variances are from now on as if it were there.
  void Expect(size_t call_case, size_t candidate);
  // None of the samples that were expected comes.
  void Withdraw();
  // All samples that were expected have come, in the order of Expect.
  void Arrive(const std::vector<double>& log_seconds);

 private:
  struct Place {
    uint32_t block = 0;
    uint32_t cell = 0;
  };
  const Place& At(size_t call_case, size_t candidate) const {
    return places_[call_case][candidate];
  }

  std::vector<std::unique_ptr<GaussianProcess>> blocks_;
  std::vector<std::vector<Place>> places_;
  std::vector<Place> expected_;
};

}  // namespace diapason::search
