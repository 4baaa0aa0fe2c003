#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "measure/policy_check.h"
#include "tune/clock.h"

namespace diapason::tune {

// One claim: the second is faster than the first.
struct Claim {
  measure::Trial library;
  measure::Trial tuned;
};

// Starts ranks to measure with; each call starts new ones, where they can be started.
using MeasurerSource = std::function<Result<std::shared_ptr<measure::Measurer>>()>;

struct VerifyOptions {
  double seconds = 30;  // no round begins later, once there are kLeastJudgedRounds of them
  // Nothing is measured later than this, however few rounds there are; 0: no such limit.
  double hard_seconds = 0;
  int most_rounds = 400;
  // From the first of these rounds on, every so many, it is checked which claims are settled: their
  // intervals far enough on one side that looking so seldom changes nothing. Those rest, and the
  // others have the time that is left.
  int first_look = 40;
  int look_every = 20;
  int launches =
      3;  // over which the rounds are spread: ranks that start again may behave differently
  double block_seconds = 0.003;
  int most_iterations = 50;
  TuneClock clock = SteadySeconds;
};

// After every reading: of which claim and which of its sides. Returning false ends the verification
// with what there is.
using VerifyObserver =
    std::function<bool(size_t claim, bool tuned, int round, const dataset::Sample& sample)>;

// Measures both sides of every claim, close together and in turns first, round after round, on
// ranks that were started for it. An interval that one looks at until it pleases is none: so it
// goes on until the time is over, unless everything is long since clear.
//
// What fails is a check that says so; an error: no more measuring is possible. A check's trial is
// the tuned one.
Result<std::vector<measure::PolicyCheck>> Verify(const std::vector<Claim>& claims,
                                                 const MeasurerSource& source,
                                                 const VerifyOptions& options,
                                                 const VerifyObserver& observer = nullptr);

}  // namespace diapason::tune
