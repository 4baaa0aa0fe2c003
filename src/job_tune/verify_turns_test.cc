#include "job_tune/verify_turns.h"

#include <gtest/gtest.h>

namespace diapason::job_tune {
namespace {

// A launch of a job with iterations of 16 ms: 20 s until the first call, 20 turns, and its end.
constexpr double kIteration = 0.016;
constexpr double kStartUp = 20;
constexpr double kLaunch = kStartUp + 20 * 20 * kIteration + kToEnd;

// A search that has found nothing so far may find something in its last block.
TEST(TurnVerifier, KeepsTwoLaunchesBeforeAnythingIsFound) {
  EXPECT_DOUBLE_EQ(TurnVerifier::SecondsToKeep(165, false, kIteration, kStartUp), 2 * kLaunch);
}

TEST(TurnVerifier, KeepsThreeLaunchesForWhatIsFound) {
  EXPECT_DOUBLE_EQ(TurnVerifier::SecondsToKeep(600, true, kIteration, kStartUp), 3 * kLaunch);
}

TEST(TurnVerifier, LeavesTheSearchItsShareOfASmallBudget) {
  for (const bool found : {false, true}) {
    EXPECT_DOUBLE_EQ(TurnVerifier::SecondsToKeep(60, found, kIteration, kStartUp),
                     kMostForVerifying * 60);
  }
}

}  // namespace
}  // namespace diapason::job_tune
