#include "mpi_tune/contexts.h"

#include <gtest/gtest.h>

namespace diapason::mpi_tune {
namespace {

using mpi_profile::Fixed;
using mpi_profile::MpiCallClass;
using mpi_profile::MpiProfile;

MpiCallClass Class(MpiCall call, uint64_t bytes, uint32_t ranks, double seconds, uint64_t calls,
                   Fixed fixed = Fixed::kNo) {
  MpiCallClass one;
  one.call = call;
  one.bytes = bytes;
  one.ranks = ranks;
  one.fixed = fixed;
  one.seconds = seconds;
  one.calls = calls;
  one.median = seconds / static_cast<double>(calls);
  return one;
}

MpiProfile Profile() {
  MpiProfile profile;
  profile.ranks = 4;
  profile.program_seconds = 10;
  profile.collective_seconds = profile.recorded_seconds = 5;
  profile.classes = {Class(MpiCall::kAllreduce, 65536, 4, 2.5, 400),
                     Class(MpiCall::kAllreduce, 60000, 4, 0.5, 100),
                     Class(MpiCall::kIallreduce, 65536, 4, 1, 100, Fixed::kNonBlocking),
                     Class(MpiCall::kBcast, 1 << 20, 2, 0.9, 50),
                     Class(MpiCall::kReduce, 8, 4, 0.1, 1000)};
  return profile;
}

TEST(Contexts, AreBandsOfSizesOnCommunicatorsOfOneSize) {
  const std::vector<Context> contexts = ContextsOf(Profile(), 0.02, 6);
  ASSERT_EQ(contexts.size(), 2u);
  EXPECT_EQ(contexts[0].collective, Collective::kAllReduce);
  EXPECT_EQ(contexts[0].least_bytes, 60000u);
  EXPECT_EQ(contexts[0].most_bytes, 65536u);
  EXPECT_EQ(contexts[0].usual_bytes, 65536u);
  EXPECT_DOUBLE_EQ(contexts[0].share, 0.3);
  EXPECT_EQ(contexts[1].Text(), "broadcast of 1 MiB on 2 ranks");
  EXPECT_EQ(ContextsOf(Profile(), 0, 1).size(), 1u);
}

TEST(Contexts, TimesOfOneCallAreThoseOfItsSizes) {
  const std::vector<Context> contexts = ContextsOf(Profile(), 0.02, 6);
  const std::vector<double> seconds = CallSeconds(Profile(), contexts);
  EXPECT_DOUBLE_EQ(seconds[0], 3.0 / 500);
  EXPECT_DOUBLE_EQ(seconds[1], 0.9 / 50);
  EXPECT_EQ(CallSeconds(MpiProfile(), contexts), (std::vector<double>{0, 0}));
}

TEST(Contexts, CandidatesWorkOnSoManyRanks) {
  const auto has = [](const std::vector<Config>& configs, Collective collective,
                      std::string_view name, int64_t segment) {
    return std::any_of(configs.begin(), configs.end(), [&](const Config& one) {
      return one.segment_bytes == segment &&
             AlgorithmName(Library::kOpenMpi, collective, one.algorithm) == name;
    });
  };
  Context context;
  context.collective = Collective::kAllGather;
  context.ranks = 3;
  context.usual_bytes = 1 << 20;
  std::vector<Config> configs = CandidatesOf(context);
  EXPECT_TRUE(configs[0].IsDefault());
  EXPECT_FALSE(has(configs, context.collective, "two_proc", 0));
  EXPECT_FALSE(has(configs, context.collective, "neighbor", 0));
  EXPECT_TRUE(has(configs, context.collective, "ring", 0));
  context.ranks = 2;
  EXPECT_TRUE(has(CandidatesOf(context), context.collective, "two_proc", 0));
  context.collective = Collective::kBroadcast;
  configs = CandidatesOf(context);
  EXPECT_TRUE(has(configs, context.collective, "pipeline", 131072));
  EXPECT_FALSE(has(configs, context.collective, "basic_linear", 8192));
  context.usual_bytes = 16384;
  EXPECT_TRUE(has(CandidatesOf(context), context.collective, "pipeline", 8192));
  EXPECT_FALSE(has(CandidatesOf(context), context.collective, "pipeline", 32768));
}

TEST(Contexts, OnlyChosenConfigurationsAreRows) {
  const std::vector<Context> contexts = ContextsOf(Profile(), 0.02, 6);
  std::vector<std::string> remarks;
  const policy::Policy policy = PolicyOf(contexts, {{}, {3, kKeep, 0, 32768}}, &remarks);
  ASSERT_EQ(policy.rules.size(), 1u);
  EXPECT_EQ(policy::RuleText(Library::kOpenMpi, policy.rules[0]),
            "broadcast,1048576,1048576,pipeline,-1,-1,-1,2,-1,-1,32768");
  EXPECT_EQ(remarks.size(), 1u);
}

}  // namespace
}  // namespace diapason::mpi_tune
