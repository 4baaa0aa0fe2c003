#pragma once

#include <array>
#include <span>

namespace diapason::model {

// The coarse cost model of a family of configurations: a start-up time, to which every channel
// adds; a time per byte of each channel; and a limit on the total bandwidth. Parameters are
// logarithms of seconds, so that uncertainty is a factor.
//
//   t = | start + channels * each,  | bytes / channels * lane, bytes * wire | |
//
// where |a, b| is a smooth maximum.
struct CostCurve {
  enum Parameter { kStart, kLane, kWire, kEach, kParameters };
  std::array<double, kParameters> at{};

  double LogSeconds(double log_bytes, double log_channels) const;
};

// A curve and the covariance of its parameters.
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

// The maximum a posteriori curve for the points, each with standard deviation `noise`. Without
// points, the prior. Deterministic.
FittedCurve FitCurve(std::span<const CurvePoint> points, const CurvePrior& prior, double noise);

}  // namespace diapason::model
