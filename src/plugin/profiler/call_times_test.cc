#include "plugin/profiler/call_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace diapason::plugin {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class CallTimesTest : public testing::Test {
 protected:
  CallTimesTest() { Said().clear(); }

  static std::string& Said() {
    static std::string said;
    return said;
  }
  static bool Say(const std::string& text) noexcept {
    if (deaf_) return false;
    Said() += text;
    return true;
  }
  static RunSeen Run(uint64_t bytes, uint64_t sequence = 7) {
    RunSeen run;
    run.collective = static_cast<int>(Collective::kAllReduce);
    run.bytes = bytes;
    run.algorithm = kRing;
    run.protocol = kSimple;
    run.channels = 2;
    run.sequence = sequence;
    return run;
  }
  static CallTimes::Place Here(int rank = 1) { return {rank, 4, "world (0x12)", Library::kNccl}; }
  static size_t Lines() {
    return static_cast<size_t>(std::count(Said().begin(), Said().end(), '\n'));
  }

  static inline bool deaf_ = false;
};

TEST_F(CallTimesTest, ACallOverTheLimitIsOneLineASecond) {
  CallTimes times(Here(), {0.01, 0}, Say);
  for (int i = 0; i < 20; ++i) times.Count(Run(1 << 20), 100e-6, kSecond);
  EXPECT_EQ(Said(), "");
  times.Count(Run(1 << 20, 19), 0.0182, 2 * kSecond);
  EXPECT_EQ(Said().substr(0, Said().find("usually")),
            "diapason: rank 1: slow call: allreduce number 19, 1MiB took 18.2 ms (limit 10 ms, ");
  EXPECT_NE(Said().find("), 0.0576 GB/s, ring/simple, 2 channels, communicator world (0x12)\n"),
            std::string::npos)
      << Said();
  times.Count(Run(1 << 20), 0.02, 2 * kSecond + kSecond / 2);
  times.Count(Run(1 << 20), 0.02, 2 * kSecond + kSecond / 2);
  EXPECT_EQ(Lines(), 1u);
  times.Count(Run(1 << 20), 0.02, 3 * kSecond + 1);
  EXPECT_EQ(Lines(), 2u);
  EXPECT_NE(Said().find("; 2 more since the last line\n"), std::string::npos) << Said();
}

TEST_F(CallTimesTest, TheFactorNeedsAUsualTimeOfTheSameSize) {
  CallTimes times(Here(), {-1, 3}, Say);
  times.Count(Run(1 << 20), 1, kSecond);  // the first may be slow: nothing is usual yet
  for (int i = 0; i < 40; ++i) times.Count(Run(1 << 20), 100e-6, kSecond);
  times.Count(Run(1 << 10), 1, 2 * kSecond);
  times.Count(Run(1 << 20), 290e-6, 2 * kSecond);
  EXPECT_EQ(Said(), "");
  times.Count(Run(1 << 20), 320e-6, 2 * kSecond);
  EXPECT_NE(Said().find("took 0.32 ms (usually 0.1"), std::string::npos) << Said();
}

TEST_F(CallTimesTest, TheSummaryHasEveryCollectiveAndSize) {
  CallTimes times(Here(0), {10, 0}, Say);
  for (int i = 0; i < 98; ++i) times.Count(Run(1 << 20), 100e-6, 0);
  RunSeen other = Run(1 << 20);
  other.algorithm = kTree;
  for (int i = 0; i < 2; ++i) times.Count(other, 1e-3, 0);
  RunSeen gather = Run(1000);
  gather.collective = static_cast<int>(Collective::kAllGather);
  times.Count(gather, 50e-6, 0);
  times.CountUntimed();
  times.End();
  EXPECT_EQ(Said(), times.Summary());
  EXPECT_NE(
      Said().find("diapason: rank 0: calls of communicator world (0x12) (4 ranks): 101 timed, "
                  "0 slow, 1 without a GPU time\n"),
      std::string::npos)
      << Said();
  EXPECT_EQ(Lines(), 4u) << Said();
  EXPECT_NE(Said().find("(98 %)"), std::string::npos) << Said();
  EXPECT_NE(Said().find("1000.0"), std::string::npos) << Said();  // the longest, in microseconds
}

TEST_F(CallTimesTest, OtherRanksEndInSilenceUnlessACallWasSlow) {
  CallTimes quiet(Here(2), {10, 0}, Say);
  quiet.Count(Run(8), 1e-6, 0);
  quiet.End();
  EXPECT_EQ(Said(), "");
  CallTimes slow(Here(2), {0, 0}, Say);
  slow.Count(Run(8), 1e-6, kSecond);
  slow.End();
  EXPECT_EQ(Lines(), 4u) << Said();
  CallTimes unused(Here(0), {10, 0}, Say);
  Said().clear();
  unused.End();
  EXPECT_EQ(Said(), "");
}

TEST_F(CallTimesTest, ALineThatCouldBlockIsCounted) {
  CallTimes times(Here(), {0, 0}, Say);
  deaf_ = true;
  times.Count(Run(8), 1e-6, kSecond);
  deaf_ = false;
  times.Count(Run(8), 1e-6, 3 * kSecond);
  EXPECT_NE(Said().find("; 1 more since the last line\n"), std::string::npos) << Said();
}

TEST_F(CallTimesTest, OddFiguresAreSurvived) {
  CallTimes times(Here(-1), {0, 2}, Say);
  for (const double seconds : {0.0, 1e-12, 1e9, -1.0, std::nan("")}) {
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
      RunSeen run = Run(bytes);
      times.Count(run, seconds, kSecond);
      run.algorithm = -1;
      times.Count(run, seconds, kSecond);
      run.collective = 99;
      times.Count(run, seconds, kSecond);
    }
  }
  EXPECT_FALSE(times.Summary().empty());
}

SlowCallLimits LimitsOf(const std::map<std::string, std::string>& variables) {
  return ReadSlowCallLimits(Settings::Read(MapEnvironment(variables)));
}

TEST_F(CallTimesTest, OffUnlessOneIsSet) {
  EXPECT_FALSE(LimitsOf({}).on());
  EXPECT_FALSE(LimitsOf({{"DIAPASON_SLOW_CALL", "-1"}}).on());
  EXPECT_DOUBLE_EQ(LimitsOf({{"DIAPASON_SLOW_CALL", "5"}}).seconds, 0.005);
  EXPECT_TRUE(LimitsOf({{"DIAPASON_SLOW_FACTOR", "3"}}).on());
}

}  // namespace
}  // namespace diapason::plugin
