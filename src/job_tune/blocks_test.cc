#include "job_tune/blocks.h"

#include <gtest/gtest.h>

namespace diapason::job_tune {
namespace {

constexpr Config kTreeSimple{kTree, kSimple, 0};
constexpr uint64_t kSmall = 32 << 10;
constexpr uint64_t kLarge = 1 << 20;

// A rank whose iteration is three small calls and a large one; times in milliseconds.
class Rank {
 public:
  Rank() {
    job_profile::Role role;
    role.shape = {1, 4};
    roles_.push_back(role);
  }
  void Iterate(int count, double milliseconds, const Config& small, const Config& large) {
    for (int i = 0; i < count; ++i) Iteration(milliseconds, {small, small, small}, large);
  }
  void Iteration(double milliseconds, const std::vector<Config>& small, const Config& large) {
    const auto step = static_cast<uint64_t>(milliseconds * 1e6 / 5);
    for (const Config& one : small) Call(kSmall, one, step);
    Call(kLarge, large, 2 * step);  // the longest pause is between two iterations
  }
  std::vector<Block> Blocks() const { return BlocksOf(timeline_, roles_, Contexts()); }
  static std::vector<JobContext> Contexts() {
    return {{Library::kNccl, Collective::kAllReduce, 15, {1, 4}},
            {Library::kNccl, Collective::kAllReduce, 20, {1, 4}}};
  }

 private:
  void Call(uint64_t bytes, const Config& asked, uint64_t step) {
    job_profile::Call call;
    call.bytes = bytes;
    call.collective = static_cast<uint8_t>(Collective::kAllReduce);
    call.host_ns = now_;
    call.start_ns = now_;
    call.stop_ns = now_ + 1000;
    call.decided = true;
    call.asked = asked;
    call.sequence = timeline_.calls.size();
    timeline_.calls.push_back(call);
    now_ += step;
  }
  std::vector<job_profile::Role> roles_;
  job_profile::Timeline timeline_;
  uint64_t now_ = 1000000000;
};

TEST(Blocks, IterationsOfOneSettingAreOneBlock) {
  Rank rank;
  rank.Iterate(10, 8, {}, {});
  rank.Iterate(10, 6, kTreeSimple, {});
  rank.Iterate(10, 8, {}, {});
  const std::vector<Block> blocks = rank.Blocks();
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0].setting, (JobSetting{{}, {}}));
  EXPECT_EQ(blocks[1].setting, (JobSetting{kTreeSimple, {}}));
  EXPECT_EQ(blocks[1].all, 10u);
  EXPECT_EQ(blocks[1].seconds.size(), 8u) << "borders are left out";
  for (const double seconds : blocks[1].seconds) EXPECT_NEAR(seconds, 0.006, 1e-9);
}

TEST(Blocks, MixedIterationsBelongToNone) {
  Rank rank;
  rank.Iterate(8, 8, {}, {});
  rank.Iteration(7, {{}, kTreeSimple, kTreeSimple}, {});
  rank.Iterate(8, 6, kTreeSimple, {});
  const std::vector<Block> blocks = rank.Blocks();
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].all + blocks[1].all, 15u) << "the last iteration has no end";
}

TEST(Blocks, ResultsFollowTheOrderOfWhatWasAskedFor) {
  Rank rank;
  rank.Iterate(10, 8, {}, {});
  rank.Iterate(10, 6, kTreeSimple, {});
  rank.Iterate(10, 8, {}, {});
  rank.Iterate(10, 9, {}, kTreeSimple);
  rank.Iterate(10, 8, {}, {});
  const JobSetting base{{}, {}};
  const std::vector<learn::SegmentResult> results =
      ResultsOf({base, {kTreeSimple, {}}, base, {{kRing, kLl, 0}, {}}, {{}, kTreeSimple}, base},
                rank.Blocks());
  ASSERT_EQ(results.size(), 6u);
  EXPECT_NEAR(results[0].seconds, 0.008, 1e-9);
  EXPECT_NEAR(results[1].seconds, 0.006, 1e-9);
  EXPECT_NEAR(results[2].seconds, 0.008, 1e-9);
  EXPECT_EQ(results[3].samples, 0u) << "it never took effect";
  EXPECT_NEAR(results[4].seconds, 0.009, 1e-9);
  EXPECT_NEAR(results[5].seconds, 0.008, 1e-9);
  EXPECT_GE(results[5].samples, 7u);
}

TEST(Blocks, TooFewIterationsAreNoMeasurement) {
  Rank rank;
  rank.Iterate(10, 8, {}, {});
  rank.Iterate(2, 6, kTreeSimple, {});
  rank.Iterate(10, 8, {}, {});
  const std::vector<learn::SegmentResult> results =
      ResultsOf({{{}, {}}, {kTreeSimple, {}}, {{}, {}}}, rank.Blocks());
  EXPECT_EQ(results[1].samples, 0u);
  EXPECT_GT(results[2].samples, 0u);
}

TEST(Blocks, NothingFromNothing) {
  EXPECT_TRUE(Rank().Blocks().empty());
  EXPECT_EQ(ResultsOf({{{}, {}}}, {})[0].samples, 0u);
}

}  // namespace
}  // namespace diapason::job_tune
