#pragma once

#include <vector>

#include "job_profile/exposure.h"
#include "job_profile/timeline.h"

namespace diapason::job_profile {

struct RankIteration {
  size_t first = 0;  // into Timeline::calls
  size_t end = 0;
  double length = 0;   // seconds to the start of the next one
  uint64_t begin = 0;  // host clock
};

// The iterations of one rank: by diapason_step() if the program called it, else by the order of its
// calls, else, if they are all alike, by their number. Each rank is looked at alone, since the
// stages of a pipeline differ. Where most steps have no call between them, because graphs are
// replayed and their calls not reported, an iteration is the time between two steps.
struct RankIterations {
  Source source = Source::kNone;
  bool gpu_clock = false;
  std::vector<RankIteration> timed;  // those with a next one
  std::vector<uint64_t> kinds;       // of all calls, as they were told apart
  size_t startup_calls = 0;
  size_t other_calls = 0;
  size_t parts = 1;
};
RankIterations FindIterations(const Timeline& timeline);

// How many of them began after the last question about a captured call: before it, calls that will
// be part of a graph run one by one.
size_t AfterCapture(const Timeline& timeline, const RankIterations& found);

// RankIterations::kinds where calls are told apart by their sizes.
std::vector<uint64_t> KindsBySize(const Timeline& timeline);

// The collectives of the newest iterations, by position: those that were timed.
struct PositionSpans {
  std::vector<IterationSpans> iterations;
  std::vector<const Call*> examples;  // by position: a call there
  std::vector<double> waiting;        // by position: the share of its time
};
PositionSpans SpansOf(const Timeline& timeline, const RankIterations& found);

}  // namespace diapason::job_profile
