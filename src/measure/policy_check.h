#pragma once

#include <vector>

#include "base/settings.h"
#include "base/stats.h"
#include "base/status.h"
#include "measure/bench.h"
#include "measure/measurer.h"

namespace diapason::measure {

enum class PolicyVerdict {
  kDefault,       // the policy leaves the call to the library: measured once
  kFaster,        // the whole interval of the gain is above 1
  kSlower,        // the whole interval is below 1
  kNoDifference,  // 1 is inside the interval
  kTooFewRounds,  // fewer than kLeastJudgedRounds
  kFailed,        // one of the two was refused, hung, crashed or computed wrong results
};
// "faster", "no difference".
const char* PolicyVerdictName(PolicyVerdict verdict);

// By how much gains vary from launch to launch, known from calls that were verified together.
struct LaunchVariation {
  double variance = 0;  // of the logarithms of gains, beyond what rounds explain
  double freedom = 0;   // degrees of freedom that it counts for; 0: nothing is known
};

// What a policy's configuration does for one call, against the library's own choice.
struct PolicyCheck {
  Trial trial;                // its config is what the policy says
  TimingFigure library;       // the library's own choice
  TimingFigure policy;        // no rounds where the policy says nothing
  std::vector<double> gains;  // of every round: the library's seconds over the policy's
  // Of every round, which launch of the ranks it ran on; empty: all on one.
  std::vector<int> launches;
  double gain = 0;    // their median; 0: there are none
  Interval interval;  // of it, 95 %; where there are several launches, with what they vary by
  // The launches have different gains, by more than their rounds explain: gain and interval are
  // then those of a launch, from what each of them has as its median.
  bool launches_differ = false;
  PolicyVerdict verdict = PolicyVerdict::kDefault;

  // The one of the two that failed, else nullptr.
  const TimingFigure* Failure() const;
  // What the gains come to: their median, its interval, the verdict. A few launches show badly by
  // how much launches vary; `usual` is what they vary by with other calls.
  void Conclude(const LaunchVariation& usual = {});
};

// What launches vary by in these checks, which ran on the same launches.
LaunchVariation VariationOfLaunches(const std::vector<PolicyCheck>& checks);

// Measures a call both ways in the same run. A round is a block of calls of each, close together
// and in turns first, so that drift hits both alike and cancels in the round's gain. Rounds are
// taken until the interval of the gain is tight, kLeastJudgedRounds at least unless `effort` allows
// fewer; the time limit is for each of the two.
//
// What the library refuses or gets wrong is a check that says so; an error: no more measuring is
// possible. `*samples`, where given, gets every round for a store.
Result<PolicyCheck> CheckPolicy(Measurer* measurer, const Trial& trial, const Effort& effort,
                                std::vector<dataset::Sample>* samples = nullptr);

struct PolicySummary {
  size_t compared = 0;  // calls with a gain
  size_t faster = 0;
  size_t slower = 0;
  size_t no_difference = 0;
  size_t too_few_rounds = 0;
  size_t failed = 0;
  size_t left_to_library = 0;
  double mean_gain = 1;  // geometric, over those compared
  size_t worst = 0;      // the one with the least gain; only where some were compared
  bool wrong = false;    // results were, of either
};
PolicySummary Summarize(const std::vector<PolicyCheck>& checks);

// An error where our plugin follows a policy already: that would be compared with itself.
Status CheckNoPolicyIsSet(const Settings& settings, const Subject& subject);

}  // namespace diapason::measure
