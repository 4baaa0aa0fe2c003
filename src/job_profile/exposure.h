#pragma once

#include <cstddef>
#include <vector>

namespace diapason::job_profile {

// One collective of an iteration, in seconds from the iteration's first collective.
struct Span {
  size_t position = 0;  // the same collective in every iteration
  size_t role = 0;      // its communicator's: kernels of one role run one after the other
  double start = 0;
  double stop = 0;
  double launched = 0;  // when the host launched it, on the same clock
};
// The spans of one iteration, and the start of the next one.
struct IterationSpans {
  std::vector<Span> spans;
  double length = 0;
};

// Of one position, in seconds per iteration: medians.
struct PositionTime {
  double total = 0;  // in which it ran, and no collective that started later
  double exposed = 0;
  double low = 0;
  double high = 0;
  double slowed = 0;        // by which it slows the work that hides it
  bool host_bound = false;  // what follows it was launched late by the host
};

// How much of the time of collectives is exposed, which is to say that the work after it waits for
// it, by what the collectives' own kernels show. An estimate:
//
// - From one iteration to the next the time of a collective varies. If the next collective then
//   starts as much later, the work between the two waited for the first one: it was exposed. If the
//   next one starts when it would have started anyway, it was hidden. The share is the slope of the
//   time between the two starts over the collective's time (the median of the slopes of all pairs
//   of iterations, so that single slow iterations do not count), with its 90 % interval.
// - A hidden collective slows the work beside it, so that its slope is not 0 either: slopes below a
//   half are taken as that, and their median is subtracted from all. If the interval has either
//   this slope or 1 in it, that one is taken.
// - Collectives that follow each other without a gap waited for each other, and so the work that
//   ended in the last one was done while the others ran, but no record says when: at the earliest
//   when the host launched the last one, at the latest when the last one started. Between these
//   bounds the middle is taken.
//
// Positions that too few iterations have, or whose times hardly vary, have the bounds 0 and all of
// their time, and the share of all positions together.
std::vector<PositionTime> EstimateExposure(const std::vector<IterationSpans>& iterations,
                                           size_t positions);

// The slope of y over x: the median over all pairs, and its 90 % interval; for at least kLeastPairs
// points. `known` is false if x does not vary.
struct Slope {
  double value = 0;
  double low = 0;
  double high = 0;
  bool known = false;
};
Slope MedianSlope(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace diapason::job_profile
