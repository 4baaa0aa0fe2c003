#pragma once

#include <cstddef>
#include <string>

namespace diapason {

// Fewer samples than this have no 95 % interval of their median, however they turn out: all of them
// lie on one side of it more often than one time in twenty. What MedianInterval95 returns for them
// is their range.
inline constexpr size_t kLeastForInterval95 = 6;
inline bool HasInterval95(size_t samples) { return samples >= kLeastForInterval95; }

// "[1.20, 1.30]": a 95 % interval; "(1.20 to 1.30)": the range of too few samples for one; "-": a
// single sample has neither.
inline std::string IntervalText(const std::string& low, const std::string& high, size_t samples) {
  if (samples < 2) return "-";
  return HasInterval95(samples) ? "[" + low + ", " + high + "]" : "(" + low + " to " + high + ")";
}

}  // namespace diapason
