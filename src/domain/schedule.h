#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "diapason/config.h"

namespace diapason {

// Calls of one collective with nearly the same size are one context: sizes in (2^(b-1), 2^b] are
// band b, so that a power of two, which is what programs send, is the largest of its band.
inline int SizeBand(uint64_t bytes) {
  return bytes <= 1 ? 0 : static_cast<int>(std::bit_width(bytes - 1));
}
inline constexpr int kSizeBands = 65;
uint64_t BandFirst(int band);
uint64_t BandLast(int band);

// Consecutive calls that run one configuration.
struct Segment {
  Config config;
  uint64_t calls = 0;
  bool counts = true;  // false: a first use, whose time says nothing about the configuration
  friend bool operator==(const Segment&, const Segment&) = default;
};

// What all ranks have agreed to run for a stretch of a context's calls: one epoch.
struct Schedule {
  Config incumbent;  // what holds when nothing better is agreed in time
  // Every rank measures the GPU time of these calls and tells rank 0.
  bool timed = false;
  std::vector<Segment> segments;

  uint64_t Calls() const;
  // Whether more than one configuration runs in it.
  bool Explores() const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// As it travels between ranks: one short line. What comes back is hostile: a number out of range, a
// segment too many or a letter too much is an error.
inline constexpr size_t kMostSegments = 512;
inline constexpr uint64_t kMostCalls = uint64_t{1} << 48;
std::string ScheduleText(const Schedule& schedule);
Result<Schedule> ParseSchedule(std::string_view text);

}  // namespace diapason
