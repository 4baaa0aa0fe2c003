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

// Of one position, in seconds per iteration: medians, which add up to the median of all together.
struct PositionTime {
  double total = 0;  // in which it ran, and no collective that started later
  double exposed = 0;
  double low = 0;
  double high = 0;
  double slowed = 0;       // by which it slows the work that hides it
  double behind_host = 0;  // in which what follows waits for the host to launch it, not for this
};

// How much of the time of collectives is exposed, which is to say that no other work of the rank
// runs beside it, by what the collectives' own kernels show. An estimate:
//
// - From one iteration to the next the time of a collective varies. If the next collective then
//   starts as much later, the work between the two waited for the first one: it was exposed. If the
//   next one starts when it would have started anyway, it was hidden. The share is the slope of the
//   time between the two starts over the collective's time (the median of the slopes of all pairs
//   of iterations, so that single slow iterations do not count), with its 90 % interval.
// - A hidden collective slows the work beside it, so that its slope is not 0 either: slopes below a
//   half are taken as that, and their median is subtracted from all. If the interval has either
//   this slope or 1 in it, that one is taken.
// - Where the next collective started as soon as the host had launched it, the slope says nothing
//   about compute: the host was late, and the GPU had done everything else. Such iterations are
//   left out of the slope; what waits for what is the same in all of them. If there are hardly any
//   others, the collective was waited for if work always stood between it and the next one, even
//   when it ended after the time at which that one usually starts; else the GPU is taken to be
//   busy for a fifth of the time, and no longer than between other collectives.
// - Collectives that follow each other without a gap waited for each other, and so the work that
//   ended in the last one was done while the others ran, but no record says how long it took: at
//   most as long as the others ran, at the least no time at all. These are the bounds. The estimate
//   is the work that is seen elsewhere in the iteration from one collective to the next, for each
//   but the last, and less where the host took less time from one launch to the next; if none is
//   seen, that between iterations, once; if the host was late for the first one, a fifth of the
//   time until it had launched the last one.
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
