#pragma once

#include <string>

#include "base/status.h"
#include "measure/bench.h"
#include "measure/rank_measurer.h"
#include "measure/targets.h"

namespace diapason::measure {

// The bandwidth of a link in each direction, and where the figure is from.
struct LinkBandwidth {
  double bytes_per_second = 0;  // 0: not known
  std::string source;           // "as given", "measured between neighbours"
};
// `given` where it is above 0, else what the backend knows, else measured between neighbours.
Result<LinkBandwidth> FindLink(RankMeasurer* measurer, double given);

// What a measurement says of a target.
struct TargetVerdict {
  double value = 0;   // in the unit of the goal
  Interval interval;  // of the value, 95 %; the range of too few samples for one
  size_t samples = 0;
  std::string not_measured;  // if not empty: why there is no value
  bool met = false;
};

// Measures what the target asks for. What the library refuses is a verdict without a value; an
// error: no more measuring is possible.
Result<TargetVerdict> JudgeTarget(RankMeasurer* measurer, const Target& target,
                                  const Effort& effort, double link);

// The cells of a table: "iteration tp", "allreduce 10MB ring"; "431 us"; "[428 us, 440 us]"; "met",
// "MISSED", "not measured: why".
std::string WhatText(const Target& target);
std::string ValueText(const Target& target, const TargetVerdict& verdict);
std::string IntervalText(const Target& target, const TargetVerdict& verdict);
std::string VerdictText(const TargetVerdict& verdict);

}  // namespace diapason::measure
