#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "job_profile/counted.h"
#include "job_profile/iterations.h"
#include "job_profile/job_profile.h"
#include "job_profile/timeline.h"

namespace diapason::job_profile {

// The iterations of a job in which the library's default and a policy took turns
// (DIAPASON_MODE=compare), compared. An iteration counts if all of its calls that a row of the
// policy matches ran in turns of one of the two.
struct TurnComparison {
  std::string rank;  // whose iterations these are: "rank 0"
  Source source = Source::kNone;
  size_t default_iterations = 0;
  size_t policy_iterations = 0;
  size_t mixed_iterations = 0;  // partly with one, partly with the other
  double default_seconds = 0;   // medians; 0: there are none
  double policy_seconds = 0;
  // One for each time at which the turns changed over: the logarithm of the default's time over the
  // policy's, each from the iterations of half a turn next to the change.
  std::vector<double> log_gains;
  // How many times as fast the iteration is with the policy: the Hodges-Lehmann estimate, with an
  // interval of 95 %. Valid if Decided().
  double gain = 0;
  double low = 0;
  double high = 0;
  bool Decided() const { return log_gains.size() >= kLeastChanges; }
  // An interval of 95 % needs so many.
  static constexpr size_t kLeastChanges = 6;

  // "the policy is faster", "the policy is slower", "no difference was found", or "cannot tell".
  std::string Verdict() const;
  // The verdict with its figures, or why there is none.
  std::string Text() const;
  // Why nothing, or little, can be said, and what to do about it; empty if all is well.
  std::string trouble;
};

// Compares the turns of one job, from the journals of its ranks; the rank whose turns changed over
// most often counts. Keeps nothing of the journals but the calls.
class TurnComparer {
 public:
  void Add(const std::string& name, const journal::JournalContents& contents) {
    maker_.Add(name, contents);
  }
  // Called once. An error if no rank ran in turns. `counted`: calls whose number per iteration is
  // known; with per_iteration 0, iterations are looked for.
  Result<TurnComparison> Finish(const CountedCalls& counted = {});

 private:
  JobMaker maker_;
};

// The turn of an iteration, and its seconds, in order.
enum class Side { kNeither, kDefault, kPolicy, kMixed };
struct SidedIteration {
  Side side = Side::kNeither;
  double seconds = 0;
};
TurnComparison CompareSides(const std::vector<SidedIteration>& iterations);

Side SideOf(const Timeline& timeline, const RankIteration& iteration);
// The iterations of one side, without those next to a change of turns: the host may be ahead of the
// GPU, so that these have part of the other side's time.
std::vector<RankIteration> IterationsOf(const Timeline& timeline,
                                        const std::vector<RankIteration>& iterations, Side side);

}  // namespace diapason::job_profile
