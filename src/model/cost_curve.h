#pragma once

#include <array>
#include <span>
#include <vector>

namespace diapason::model {

// What every family of configurations looks like from afar: a start-up time, to which every channel
// adds; bytes that a channel moves at its own pace; and a pace that no number of channels exceeds.
// All are logarithms of seconds, so that what is unknown is a factor.
//
//   t = | start + channels * each,  | bytes / channels * lane, bytes * wire | |
//
// where |a, b| is a sum that is nearly the larger of the two.
struct CostCurve {
  enum Parameter { kStart, kLane, kWire, kEach, kParameters };
  std::array<double, kParameters> at{};

  double LogSeconds(double log_bytes, double log_channels) const;
};

// A curve and how well it is known: the covariance of its parameters.
struct FittedCurve {
  CostCurve curve;
  std::array<std::array<double, CostCurve::kParameters>, CostCurve::kParameters> covariance{};

  // Standard deviation of LogSeconds.
  double Doubt(double log_bytes, double log_channels) const;
};

struct CurvePoint {
  double log_bytes = 0;
  double log_channels = 0;
  double log_seconds = 0;
};

struct CurvePrior {
  CostCurve centre;
  std::array<double, CostCurve::kParameters> width{};  // standard deviations
};

// The likeliest curve for the points under the prior, each point being off by `noise`. Without
// points, the prior. Deterministic.
FittedCurve FitCurve(std::span<const CurvePoint> points, const CurvePrior& prior, double noise);

// Small symmetric systems. The lower Cholesky factor of a matrix (row by row, n x n) in its place;
// false where it is not positive definite.
bool FactorInPlace(std::vector<double>* matrix, size_t n);
// In place: x = L^-1 x, and x = L^-T x.
void SolveLower(const std::vector<double>& factor, size_t n, double* x);
// X = L^-1 X for the columns of X (row by row, n x m).
void SolveLowerMany(const std::vector<double>& factor, size_t n, double* x, size_t m);
void SolveUpper(const std::vector<double>& factor, size_t n, double* x);

}  // namespace diapason::model
