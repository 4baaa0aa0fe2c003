#include "job_profile/counted.h"

#include <gtest/gtest.h>

namespace diapason::job_profile {
namespace {

constexpr uint64_t kBytes = 32 << 10;

CountedCalls Small(size_t per_iteration) {
  CountedCalls counted;
  counted.collective = static_cast<uint8_t>(Collective::kAllReduce);
  counted.band = 15;
  counted.shape = {1, 4};
  counted.per_iteration = per_iteration;
  return counted;
}

class CountedTest : public testing::Test {
 protected:
  CountedTest() {
    Role role;
    role.shape = {1, 4};
    roles_.push_back(role);
    role.shape = {1, 2};
    roles_.push_back(role);
  }
  void Make(uint64_t bytes, uint64_t nanoseconds, size_t role = 0, bool timed = true) {
    Call call;
    call.role = role;
    call.collective = static_cast<uint8_t>(Collective::kAllReduce);
    call.bytes = bytes;
    call.host_ns = now_;
    if (timed) {
      call.start_ns = 5000 + now_;
      call.stop_ns = call.start_ns + 10;
    }
    now_ += nanoseconds;
    timeline_.calls.push_back(call);
  }
  RankIterations Count(size_t per_iteration) {
    return CountIterations(timeline_, roles_, Small(per_iteration));
  }
  std::vector<Role> roles_;
  Timeline timeline_;
  uint64_t now_ = 1000;
};

// The pause is inside the counted iterations, wherever they begin.
TEST_F(CountedTest, EveryIterationHasItsLength) {
  for (int call = 0; call < 5; ++call) Make(kBytes, 100);
  for (int i = 0; i < 20; ++i) {
    for (int call = 0; call < 8; ++call) Make(kBytes, call == 7 ? 1300 : 100);
  }
  const RankIterations found = Count(8);
  EXPECT_TRUE(found.gpu_clock);
  ASSERT_GE(found.timed.size(), 19u);
  for (size_t i = 1; i < found.timed.size(); ++i) {
    EXPECT_NEAR(found.timed[i].length, 2000e-9, 1e-12);
    EXPECT_EQ(found.timed[i].first, found.timed[i - 1].end);
  }
}

TEST_F(CountedTest, OtherCallsBetweenThemDoNotCount) {
  for (int i = 0; i < 10; ++i) {
    Make(kBytes, 100);
    Make(1 << 20, 300);    // another size
    Make(kBytes, 200, 1);  // another communicator
    Make(kBytes, 400);
  }
  const RankIterations found = Count(2);
  ASSERT_EQ(found.timed.size(), 9u);
  for (const RankIteration& one : found.timed) {
    EXPECT_NEAR(one.length, 1000e-9, 1e-12);
    EXPECT_EQ(one.end - one.first, 4u);
  }
}

TEST_F(CountedTest, WithoutTimesTheHostsClockCounts) {
  for (int i = 0; i < 9; ++i) Make(kBytes, 500, 0, false);
  const RankIterations found = Count(4);
  EXPECT_FALSE(found.gpu_clock);
  ASSERT_EQ(found.timed.size(), 2u);
  EXPECT_NEAR(found.timed[0].length, 2000e-9, 1e-12);
}

TEST_F(CountedTest, TooFewCallsAreNoIteration) {
  EXPECT_TRUE(Count(4).timed.empty());
  for (int i = 0; i < 4; ++i) Make(kBytes, 500);
  EXPECT_TRUE(Count(4).timed.empty());
  EXPECT_TRUE(Count(0).timed.empty());
}

}  // namespace
}  // namespace diapason::job_profile
