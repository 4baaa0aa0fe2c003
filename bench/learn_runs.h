#pragma once

#include <cmath>
#include <cstdint>

#include "learn_grounds.h"
#include "rivals/rival.h"

namespace diapason::learn {

// What came of one context in one run of kCalls calls, by true mean times, in calls of the default.
struct Outcome {
  double regret = 0;      // against the best arm from the first call on
  double lost = 0;        // to trying: against what would have run otherwise
  double chosen_200 = 1;  // ratio of the arm chosen after kEarly calls
  double chosen = 1;      // and after all
  // From when on the choice always had kGood of the best arm's speed; infinite: not at the end.
  double good_after_calls = INFINITY;
  double good_after_time = INFINITY;  // in calls of the default
  bool changed = false;               // the choice in the end is not the default
};

inline constexpr uint64_t kCalls = 1000;
inline constexpr uint64_t kEarly = 200;
inline constexpr double kGood = 0.97;

// A learner as the plugin runs it: four ranks with noise of their own, lower quartiles, the slowest
// rank. Entering an epoch, rank 0 knows what ran until the epoch before the last, and proposes the
// next. Epochs 0 and 1 are `opening` calls of the default each.
Outcome RunLearner(const Ground& ground, const LearnOptions& options, uint64_t opening);

// The same for so many calls: when the context settles, and what looking for drift costs from then
// on.
struct Settling {
  double settled_after = INFINITY;  // calls; infinite: never
  double calls = 0;                 // made while it was settled
  double looking = 0;               // of those, with something else than the choice
  double lost = 0;                  // by them, in calls of the default
};
Settling RunLong(const Ground& ground, const LearnOptions& options, uint64_t opening,
                 uint64_t calls);

// Another method, which is told the time of every call at once.
Outcome RunRival(const Ground& ground, const bench::RivalMaker& maker, uint64_t seed);

// Epsilon-greedy call by call: untried arms first, then with probability epsilon any arm, else the
// lowest running mean. It is told the time of every call at once.
Outcome RunGreedy(const Ground& ground, double epsilon, uint64_t seed);

// One arm all the time.
Outcome RunFixed(const Ground& ground, size_t arm);

}  // namespace diapason::learn
