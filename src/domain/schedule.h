#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "diapason/config.h"

namespace diapason {

// Calls of one collective with similar sizes form one context: sizes in (2^(b-1), 2^b] are band b,
// so that a power of two, the usual size, is the largest of its band.
inline int SizeBand(uint64_t bytes) {
  return bytes <= 1 ? 0 : static_cast<int>(std::bit_width(bytes - 1));
}
inline constexpr int kSizeBands = 65;
uint64_t BandFirst(int band);
uint64_t BandLast(int band);

// Consecutive calls with one configuration.
struct Segment {
  Config config;
  uint64_t calls = 0;
  bool counts = true;  // false: a first use, whose time is not representative
  // The rows of the policy that the ranks have agreed on decide; `config` is the default.
  bool by_policy = false;
  friend bool operator==(const Segment&, const Segment&) = default;
};

// What all ranks have agreed to run for one epoch of a context's calls.
struct Schedule {
  Config incumbent;  // runs if nothing better is agreed on in time
  // Every rank measures the GPU time of these calls and reports it to rank 0.
  bool timed = false;
  std::vector<Segment> segments;

  uint64_t Calls() const;
  // Whether it contains more than one configuration, or leaves the choice to the policy.
  bool Explores() const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// The text form that ranks exchange: one short line. Parsing validates it fully: numbers out of
// range, too many segments and trailing characters are errors.
inline constexpr size_t kMostSegments = 512;
inline constexpr uint64_t kMostCalls = uint64_t{1} << 48;
std::string ScheduleText(const Schedule& schedule);
Result<Schedule> ParseSchedule(std::string_view text);

}  // namespace diapason
