#pragma once

#include <time.h>

#include <cstdint>

namespace diapason {

// Nanoseconds since 1970.
inline uint64_t WallTimeNs() noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// Seconds of a clock that nobody sets.
inline double SteadySeconds() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace diapason
