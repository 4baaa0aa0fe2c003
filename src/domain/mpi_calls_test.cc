#include "domain/mpi_calls.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "domain/collectives.h"

namespace diapason {
namespace {

TEST(MpiCalls, EveryCallOfMpi3HasABlockingAndANonBlockingForm) {
  EXPECT_EQ(kMpiCallCount, 2u * 22u);
  for (size_t i = 0; i < kMpiCallCount; i += 2) {
    EXPECT_TRUE(kMpiCalls[i].blocking);
    EXPECT_FALSE(kMpiCalls[i + 1].blocking);
    EXPECT_EQ("i" + std::string(kMpiCalls[i].word), kMpiCalls[i + 1].word);
    EXPECT_EQ(kMpiCalls[i + 1].rules, MpiRules::kNone) << kMpiCalls[i + 1].name;
  }
  EXPECT_EQ(FactsOf(MpiCall::kIreduce_scatter_block).name, "MPI_Ireduce_scatter_block");
}

TEST(MpiCalls, TunedCallsAreThoseThatPoliciesKnowForOpenMpi) {
  std::set<Collective> tuned;
  for (size_t i = 0; i < kMpiCallCount; ++i) {
    const auto call = static_cast<MpiCall>(i);
    const std::optional<Collective> collective = CollectiveOf(call);
    EXPECT_EQ(collective.has_value(), FactsOf(call).rules == MpiRules::kTuned) << kMpiCalls[i].name;
    if (!collective) continue;
    EXPECT_EQ(FactsOf(*collective).mpi, FactsOf(call).name);
    tuned.insert(*collective);
  }
  std::set<Collective> known;
  for (const OperationFacts& facts : kOperations) {
    if (facts.openmpi >= 0) known.insert(*facts.collective);
  }
  EXPECT_EQ(tuned, known);
}

TEST(MpiCalls, NumbersAreCollectivesOrStandBehindThem) {
  std::set<int> codes;
  for (size_t i = 0; i < kMpiCallCount; ++i) {
    const auto call = static_cast<MpiCall>(i);
    const uint8_t code = CodeOf(call);
    EXPECT_TRUE(codes.insert(code).second);
    if (CollectiveOf(call)) {
      EXPECT_EQ(code, static_cast<uint8_t>(*CollectiveOf(call)));
      EXPECT_FALSE(MpiCallOf(code));
    } else {
      EXPECT_EQ(MpiCallOf(code), call);
      EXPECT_EQ(CodeName(code), FactsOf(call).word);
    }
  }
  EXPECT_EQ(CodeName(static_cast<uint8_t>(Collective::kAllReduce)), "allreduce");
  EXPECT_EQ(CodeName(63), "?");
  EXPECT_EQ(CodeName(255), "?");
}

// Files have these numbers.
TEST(MpiCalls, NumbersDoNotChange) {
  EXPECT_EQ(static_cast<int>(MpiCall::kBarrier), 0);
  EXPECT_EQ(static_cast<int>(MpiCall::kBcast), 2);
  EXPECT_EQ(static_cast<int>(MpiCall::kIallreduce), 25);
  EXPECT_EQ(static_cast<int>(MpiCall::kIneighbor_alltoallw), 43);
}

}  // namespace
}  // namespace diapason
