#include "base/normal.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace diapason {
namespace {

// The continued fraction of the incomplete beta function (Lentz's method).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kEnough = 1e-15;
  const auto bounded = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / bounded(1 - (a + b) * x / (a + 1));
  double product = d;
  for (int m = 1; m <= 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / bounded(1 + even * d);
    c = bounded(1 + even / c);
    product *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / bounded(1 + odd * d);
    c = bounded(1 + odd / c);
    product *= d * c;
    if (std::fabs(d * c - 1) < kEnough) break;
  }
  return product;
}

// The regularised incomplete beta function, for 0 <= x <= 1; `rest` is 1 - x without cancellation.
double IncompleteBeta(double a, double b, double x, double rest) {
  if (x <= 0) return 0;
  if (rest <= 0) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log(rest));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(a, b, x) / a;
  return 1 - front * BetaFraction(b, a, rest) / b;
}

}  // namespace

double NormalDensity(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }

double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double NormalQuantile(double probability) {
  // Bisection: fast enough for a few calls per command.
  double low = -10;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (NormalCdf(middle) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

double NormalTailQuantile(double tail) {
  const double t = std::sqrt(-2 * std::log(tail));
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

double StudentQuantile(double share, double freedom) {
  const double z = NormalTailQuantile(std::max(1 - share, 1e-12));
  const double z3 = z * z * z;
  return z + (z3 + z) / (4 * freedom) +
         (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * freedom * freedom);
}

double StudentQuantile975(double freedom) {
  constexpr double kFew[] = {12.706, 4.303, 3.182, 2.776};
  if (freedom >= 4) return StudentQuantile(0.975, freedom);
  if (freedom <= 1) return kFew[0];
  const auto place = static_cast<size_t>(freedom) - 1;
  const double share = freedom - std::floor(freedom);
  return kFew[place] * std::pow(kFew[place + 1] / kFew[place], share);
}

double StudentTail(double t, double freedom) {
  if (t < 0) return 1 - StudentTail(-t, freedom);
  const double whole = freedom + t * t;
  return 0.5 * IncompleteBeta(freedom / 2, 0.5, freedom / whole, t * t / whole);
}

double StudentTailQuantile(double tail, double freedom) {
  double low = 0;
  double high = 1;
  while (StudentTail(high, freedom) > tail && high < 1e9) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (StudentTail(middle, freedom) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace diapason
