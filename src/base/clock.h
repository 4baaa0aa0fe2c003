#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace diapason {

// The time until which a call may wait.
using Deadline = std::chrono::steady_clock::time_point;

// Nanoseconds since 1970, UTC.
inline uint64_t WallTimeNs() noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// Nanoseconds of a monotonic clock, for differences.
inline uint64_t SteadyNs() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}
inline double SteadySeconds() noexcept { return static_cast<double>(SteadyNs()) * 1e-9; }

// A time as strftime formats it, in UTC; at most 63 characters.
inline std::string UtcText(time_t when, const char* format) {
  tm parts{};
  gmtime_r(&when, &parts);
  char text[64] = "";
  strftime(text, sizeof(text), format, &parts);
  return text;
}

}  // namespace diapason
