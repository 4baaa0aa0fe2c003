#include "model/cost_curve.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace diapason::model {
namespace {

constexpr int kCount = CostCurve::kParameters;
// Sharpness of the transition between the two regimes.
constexpr double kPaceBlend = 3;
constexpr double kStartBlend = 1.5;
constexpr int kMostSteps = 40;

using Vector = Eigen::Matrix<double, kCount, 1>;
using Matrix = Eigen::Matrix<double, kCount, kCount>;
using Factor = Eigen::LLT<Matrix>;

Eigen::Map<const Vector> Of(const std::array<double, kCount>& values) {
  return Eigen::Map<const Vector>(values.data());
}

// log |e^a, e^b| and the weight of a in it.
double Blend(double a, double b, double sharpness, double* share) {
  const double top = std::max(a, b);
  const double x = std::exp(sharpness * (a - top));
  const double y = std::exp(sharpness * (b - top));
  *share = x / (x + y);
  return top + std::log(x + y) / sharpness;
}

double Evaluate(const CostCurve& curve, double log_bytes, double log_channels, Vector* slope) {
  double start_share = 0;
  const double start = Blend(curve.at[CostCurve::kStart], curve.at[CostCurve::kEach] + log_channels,
                             1, &start_share);
  double lane_share = 0;
  const double pace = Blend(curve.at[CostCurve::kLane] + log_bytes - log_channels,
                            curve.at[CostCurve::kWire] + log_bytes, kPaceBlend, &lane_share);
  double share = 0;
  const double total = Blend(start, pace, kStartBlend, &share);
  if (slope != nullptr) {
    (*slope)[CostCurve::kStart] = share * start_share;
    (*slope)[CostCurve::kEach] = share * (1 - start_share);
    (*slope)[CostCurve::kLane] = (1 - share) * lane_share;
    (*slope)[CostCurve::kWire] = (1 - share) * (1 - lane_share);
  }
  return total;
}

struct Quadratic {
  double value = 0;
  Vector gradient;
  Matrix curvature;
};

// Sum of squares, and its Gauss-Newton expansion.
Quadratic Expand(const CostCurve& curve, std::span<const CurvePoint> points,
                 const CurvePrior& prior, double noise) {
  const Vector width = Of(prior.width);
  const Vector from_prior = (Of(curve.at) - Of(prior.centre.at)).cwiseQuotient(width);
  Quadratic sum{from_prior.squaredNorm(), from_prior.cwiseQuotient(width),
                width.cwiseAbs2().cwiseInverse().asDiagonal()};
  Vector slope;
  for (const CurvePoint& point : points) {
    const double off =
        (Evaluate(curve, point.log_bytes, point.log_channels, &slope) - point.log_seconds) / noise;
    sum.value += off * off;
    sum.gradient += off / noise * slope;
    sum.curvature += slope * slope.transpose() / (noise * noise);
  }
  return sum;
}

// LLT does not report NaN.
bool Positive(const Factor& factor) {
  return factor.info() == Eigen::Success && factor.matrixLLT().allFinite();
}

}  // namespace

double CostCurve::LogSeconds(double log_bytes, double log_channels) const {
  return Evaluate(*this, log_bytes, log_channels, nullptr);
}

double FittedCurve::Doubt(double log_bytes, double log_channels) const {
  Vector slope;
  Evaluate(curve, log_bytes, log_channels, &slope);
  const Eigen::Map<const Matrix> matrix(covariance[0].data());
  return std::sqrt(std::max(0.0, slope.dot(matrix * slope)));
}

FittedCurve FitCurve(std::span<const CurvePoint> points, const CurvePrior& prior, double noise) {
  FittedCurve fitted;
  fitted.curve = prior.centre;
  Quadratic here = Expand(fitted.curve, points, prior, noise);
  double damping = 1e-2;
  // Levenberg and Marquardt.
  for (int step = 0; step < kMostSteps && damping < 1e8; ++step) {
    Matrix damped = here.curvature;
    damped.diagonal() *= 1 + damping;
    const Factor factor(damped);
    if (!Positive(factor)) break;
    const Vector move = factor.solve(here.gradient);
    CostCurve next = fitted.curve;
    Eigen::Map<Vector>(next.at.data()) -= move;
    const Quadratic there = Expand(next, points, prior, noise);
    if (there.value < here.value) {
      fitted.curve = next;
      here = there;
      damping /= 3;
      if (move.lpNorm<Eigen::Infinity>() < 1e-5) break;
    } else {
      damping *= 4;
    }
  }
  const Factor factor(here.curvature);
  if (!Positive(factor)) return fitted;
  Eigen::Map<Matrix>(fitted.covariance[0].data()) = factor.solve(Matrix::Identity());
  return fitted;
}

}  // namespace diapason::model
