#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "domain/decision.h"
#include "measure/measurer.h"

namespace diapason::tune {

// Which configuration runs at every size between the smallest and the largest that were looked at,
// and what supports it. Pure: the stops come from a session (session.h), rows go into its policy.

// What supports the choice for a size or a range.
enum class Support {
  kVerified,  // faster on newly started ranks, in rounds that alternate with the default
  kMeasured,  // between verified sizes of the same configuration, measured there and not slower
  kBetween,   // between two such sizes that are at most kWidestGap apart, not measured itself
  kLeft,      // left to the library
};
const char* SupportName(Support support);  // "verified", "measured", "between", "left"

// Two sizes further apart than this need a measurement between them: a dip there cannot be known
// from the two.
inline constexpr double kWidestGap = 2.1;

// One size that was looked at, and what is decided there.
struct Stop {
  uint64_t bytes = 0;
  Config config;  // default: left to the library
  Support support = Support::kLeft;
  // Seconds of the configurations that were measured here, the default among them.
  std::vector<std::pair<Config, double>> times;
  std::string why;  // where it is left: one sentence without a full stop

  std::optional<double> TimeOf(const Config& config) const;
};

// What runs for the sizes from `first` to `last`, both inclusive.
struct Range {
  uint64_t first = 0;
  uint64_t last = 0;
  Config config;                     // default: left to the library
  Support support = Support::kLeft;  // the weakest of its stops and gaps
  std::string why;                   // where it is left
  std::vector<size_t> stops;         // indices of those inside
};

struct CoverageOptions {
  // How far the outermost ranges reach beyond their sizes, as a factor; 1: not at all.
  double edge = 1;
  // How far a range reaches into a gap that is too wide to be spanned.
  double reach = 1.41;
};

// Ranges without holes or overlaps, from the smallest stop to the largest (and `edge` beyond):
// every size is in exactly one. Stops of one configuration are joined where the gap may be
// spanned. Where two configurations meet, the border is where both are equally fast by the times on
// both sides; where one of them is the library's default, nearer to the other one, since a wrong
// row does harm and a missing one does not.
// REQUIRES: stops are sorted by size, each size once.
std::vector<Range> Cover(const std::vector<Stop>& stops, const CoverageOptions& options);

// Sizes to measure between two neighbours: as many as leave no gap wider than kWidestGap, one at
// least. Empty where the two are too near for one.
std::vector<uint64_t> SizesBetween(uint64_t low, uint64_t high);

}  // namespace diapason::tune
