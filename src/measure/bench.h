#pragma once

#include <vector>

#include "base/interval_text.h"
#include "base/stats.h"
#include "base/status.h"
#include "measure/measurer.h"

namespace diapason::measure {

// Fewer rounds than this are not judged: they have no 95 % interval.
inline constexpr int kLeastJudgedRounds = int{kLeastForInterval95};

// How long to measure one thing. A round is a block of calls as nccl-tests times it; several rounds
// say how far the figure can be trusted.
struct Effort {
  int warmups = 5;      // discarded, before the first round
  int iterations = 20;  // calls of a round, back to back
  int least_rounds = kLeastJudgedRounds;
  int most_rounds = 15;
  double tight = 0.02;   // enough when half the interval is this share of the median
  double seconds = 2.0;  // no round begins later than this after the first
  bool check = true;
};

// What several rounds say together.
struct TimingFigure {
  dataset::SampleOutcome outcome = dataset::SampleOutcome::kFine;
  std::string note;
  std::vector<double> rounds;  // seconds a call, of the slowest rank
  double mean = 0;
  double median = 0;
  Interval interval;   // of the median, 95 %; of all rounds where HasInterval() is false
  double fastest = 0;  // of the fastest rank, its median: the difference is skew
  int64_t wrong = -1;

  bool fine() const { return outcome == dataset::SampleOutcome::kFine; }
  // Whether there are enough rounds for a 95 % interval; fewer have a range.
  bool HasInterval() const { return HasInterval95(rounds.size()); }
  // What the rounds come to; `of_fastest_rank` has the fastest rank's time of each, or nothing.
  void Conclude(const std::vector<double>& of_fastest_rank);
};

// Measures one thing. What the library refuses or gets wrong is a figure that says so; an error: no
// more measuring is possible. `*samples`, where given, gets every round for a store.
Result<TimingFigure> MeasureFigure(Measurer* measurer, Trial trial, const Effort& effort,
                                   std::vector<dataset::Sample>* samples = nullptr);

// The time a call would take if its share of the bytes crossed a link of `link` bytes per second
// and nothing else happened; 0 where the link is not known.
double IdealSeconds(const Trial& trial, int ranks, double link);
// Bytes per second, as nccl-tests counts them.
double AlgBandwidth(const Trial& trial, double seconds);
double BusBandwidth(const Trial& trial, int ranks, double seconds);

}  // namespace diapason::measure
