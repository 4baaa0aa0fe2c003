#pragma once

#include <functional>
#include <map>
#include <vector>

#include "base/status.h"
#include "search/search.h"
#include "tune/clock.h"

namespace diapason::tune {

// After a search, a few candidates of every case are left that may be the best. The search has
// few samples of each, and the fastest of many that are alike looks faster than it is: so these few
// run once more, in turns, and only what they take now counts.

// Who runs again: the default first, then the fastest so far, `most` in all. No more than three of
// one algorithm and protocol, which differ in channels only and are often alike; no candidate that
// is clearly slower than the fastest. `promising` candidates, which were not measured, come in as
// well.
std::vector<size_t> Finalists(const search::CallCase& call_case,
                              const std::vector<search::CandidateSamples>& evidence,
                              const std::vector<size_t>& promising, size_t most);

struct FinalRoundOptions {
  double seconds = 20;  // no round begins later, once there are least_rounds
  int least_rounds = 3;
  int most_rounds = 40;
  // A winner has to be ahead of the default by this share, and of a finalist with fewer channels by
  // as much: those leave more of the GPU to others.
  double margin = 0.02;
  TuneClock clock = SteadySeconds;
};

// What a final round says about one case.
struct Winner {
  size_t candidate = 0;        // 0: the default
  double seconds = 0;          // its time
  double library_default = 0;  // the default's; 0: it failed
  size_t runner_up = 0;        // the fastest but for the default, where that is the winner
  double runner_up_seconds = 0;
  size_t second = 0;  // the fastest but for the default and runner_up; 0: there is none
  double second_seconds = 0;
  // Of every finalist that ran and never failed, the default included.
  std::map<size_t, double> times;
};

// The rounds of all cases. They may be spread over several launches, since ranks that are started
// again may behave differently: a finalist's time is then the geometric mean of its medians in each
// launch, so that no launch counts more than another.
class FinalRound {
 public:
  // `finalists` by case: indices of candidates, the default first. The caller owns `call_cases`.
  FinalRound(const std::vector<search::CallCase>& call_cases,
             std::vector<std::vector<size_t>> finalists);

  // Rounds on the ranks of one launch. The order within a case turns round after round. A finalist
  // that fails is out. An error: no more measuring is possible.
  Status Run(measure::Measurer* measurer, const FinalRoundOptions& options,
             const search::MeasurementObserver& observer);
  std::vector<Winner> Winners(double margin) const;

 private:
  Winner WinnerOf(size_t call_case, double margin) const;
  // One round of all cases; false: the observer has ended it.
  Result<bool> RunOnce(measure::Measurer* measurer, const search::MeasurementObserver& observer);

  const std::vector<search::CallCase>& call_cases_;
  std::vector<std::vector<size_t>> finalists_;
  // By case; by candidate, the seconds of each launch.
  std::vector<std::map<size_t, std::map<int, std::vector<double>>>> times_;
  std::vector<std::map<size_t, bool>> failed_;
  int launch_ = 0;
  size_t round_ = 0;
};

// All rounds in one launch.
Result<std::vector<Winner>> RunFinalRound(measure::Measurer* measurer,
                                          const std::vector<search::CallCase>& call_cases,
                                          const std::vector<std::vector<size_t>>& finalists,
                                          const FinalRoundOptions& options,
                                          const search::MeasurementObserver& observer);

}  // namespace diapason::tune
