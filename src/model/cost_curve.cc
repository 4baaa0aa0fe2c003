#include "model/cost_curve.h"

#include <algorithm>
#include <cmath>

namespace diapason::model {
namespace {

constexpr int kCount = CostCurve::kParameters;
// Sharpness of the transition between the two regimes.
constexpr double kPaceBlend = 3;
constexpr double kStartBlend = 1.5;
constexpr int kMostSteps = 40;

using Vector = std::array<double, kCount>;
using Matrix = std::array<Vector, kCount>;

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
  Vector gradient{};
  Matrix curvature{};
};

// Sum of squares, and its Gauss-Newton expansion.
Quadratic Expand(const CostCurve& curve, std::span<const CurvePoint> points,
                 const CurvePrior& prior, double noise) {
  Quadratic sum;
  for (int i = 0; i < kCount; ++i) {
    const double off = (curve.at[i] - prior.centre.at[i]) / prior.width[i];
    sum.value += off * off;
    sum.gradient[i] += off / prior.width[i];
    sum.curvature[i][i] += 1 / (prior.width[i] * prior.width[i]);
  }
  Vector slope{};
  for (const CurvePoint& point : points) {
    const double off =
        (Evaluate(curve, point.log_bytes, point.log_channels, &slope) - point.log_seconds) / noise;
    sum.value += off * off;
    for (int i = 0; i < kCount; ++i) {
      sum.gradient[i] += off * slope[i] / noise;
      for (int j = 0; j < kCount; ++j) {
        sum.curvature[i][j] += slope[i] * slope[j] / (noise * noise);
      }
    }
  }
  return sum;
}

std::vector<double> Flat(const Matrix& matrix, double damping) {
  std::vector<double> flat;
  for (int i = 0; i < kCount; ++i) {
    for (int j = 0; j < kCount; ++j) {
      flat.push_back(matrix[i][j] * (i == j ? 1 + damping : 1));
    }
  }
  return flat;
}

}  // namespace

double CostCurve::LogSeconds(double log_bytes, double log_channels) const {
  return Evaluate(*this, log_bytes, log_channels, nullptr);
}

double FittedCurve::Doubt(double log_bytes, double log_channels) const {
  Vector slope{};
  Evaluate(curve, log_bytes, log_channels, &slope);
  double sum = 0;
  for (int i = 0; i < kCount; ++i) {
    for (int j = 0; j < kCount; ++j) sum += slope[i] * covariance[i][j] * slope[j];
  }
  return std::sqrt(std::max(0.0, sum));
}

FittedCurve FitCurve(std::span<const CurvePoint> points, const CurvePrior& prior, double noise) {
  FittedCurve fitted;
  fitted.curve = prior.centre;
  Quadratic here = Expand(fitted.curve, points, prior, noise);
  double damping = 1e-2;
  // Levenberg and Marquardt.
  for (int step = 0; step < kMostSteps && damping < 1e8; ++step) {
    std::vector<double> factor = Flat(here.curvature, damping);
    if (!FactorInPlace(&factor, kCount)) break;
    Vector move = here.gradient;
    SolveLower(factor, kCount, move.data());
    SolveUpper(factor, kCount, move.data());
    CostCurve next = fitted.curve;
    double length = 0;
    for (int i = 0; i < kCount; ++i) {
      next.at[i] -= move[i];
      length = std::max(length, std::fabs(move[i]));
    }
    const Quadratic there = Expand(next, points, prior, noise);
    if (there.value < here.value) {
      fitted.curve = next;
      here = there;
      damping /= 3;
      if (length < 1e-5) break;
    } else {
      damping *= 4;
    }
  }
  std::vector<double> factor = Flat(here.curvature, 0);
  if (!FactorInPlace(&factor, kCount)) return fitted;
  for (int i = 0; i < kCount; ++i) {
    Vector unit{};
    unit[i] = 1;
    SolveLower(factor, kCount, unit.data());
    SolveUpper(factor, kCount, unit.data());
    for (int j = 0; j < kCount; ++j) fitted.covariance[j][i] = unit[j];
  }
  return fitted;
}

bool FactorInPlace(std::vector<double>* matrix, size_t n) {
  std::vector<double>& m = *matrix;
  for (size_t j = 0; j < n; ++j) {
    double* const row = &m[j * n];
    for (size_t k = 0; k < j; ++k) {
      const double* const other = &m[k * n];
      double sum = row[k];
      for (size_t i = 0; i < k; ++i) sum -= row[i] * other[i];
      row[k] = sum / other[k];
    }
    double sum = row[j];
    for (size_t i = 0; i < j; ++i) sum -= row[i] * row[i];
    if (!(sum > 0)) return false;
    row[j] = std::sqrt(sum);
    std::fill(row + j + 1, row + n, 0.0);
  }
  return true;
}

void SolveLower(const std::vector<double>& factor, size_t n, double* x) {
  for (size_t i = 0; i < n; ++i) {
    double sum = x[i];
    for (size_t k = 0; k < i; ++k) sum -= factor[i * n + k] * x[k];
    x[i] = sum / factor[i * n + i];
  }
}

void SolveLowerMany(const std::vector<double>& factor, size_t n, double* x, size_t m) {
  for (size_t i = 0; i < n; ++i) {
    double* const row = x + i * m;
    for (size_t k = 0; k < i; ++k) {
      const double share = factor[i * n + k];
      const double* const other = x + k * m;
      for (size_t j = 0; j < m; ++j) row[j] -= share * other[j];
    }
    for (size_t j = 0; j < m; ++j) row[j] /= factor[i * n + i];
  }
}

void SolveUpper(const std::vector<double>& factor, size_t n, double* x) {
  for (size_t i = n; i-- > 0;) {
    double sum = x[i];
    for (size_t k = i + 1; k < n; ++k) sum -= factor[k * n + i] * x[k];
    x[i] = sum / factor[i * n + i];
  }
}

}  // namespace diapason::model
