#include "base/normal.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace diapason {

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

}  // namespace diapason
