#include "domain/vocabulary.h"

#include <gtest/gtest.h>

#include "domain/decision.h"

namespace diapason {
namespace {

TEST(VocabularyTest, SpellingsPeopleUseAreOneName) {
  for (const char* name : {"allgather", "all_gather", "AllGather", "ALL-GATHER"}) {
    EXPECT_EQ(ParseCollective(Library::kNccl, name).value(), Collective::kAllGather) << name;
  }
  for (const char* name : {"ring", "RING", "Ring"}) {
    EXPECT_EQ(ParseAlgorithm(Library::kNccl, Collective::kAllReduce, name).value(), kRing);
  }
  EXPECT_EQ(ParseAlgorithm(Library::kNccl, Collective::kAllReduce, "NVLSTree").value(), kNvlsTree);
  EXPECT_EQ(ParseAlgorithm(Library::kNccl, Collective::kAllReduce, "CollNetDirect").value(),
            kCollNetDirect);
  EXPECT_EQ(ParseProtocol(Library::kNccl, "Simple").value(), kSimple);
  EXPECT_EQ(ParseCollective(Library::kNccl, "bcast").value(), Collective::kBroadcast);
}

TEST(VocabularyTest, EveryPrintedNameReadsBack) {
  for (const Library library :
       {Library::kNccl, Library::kRccl, Library::kGloo, Library::kOpenMpi}) {
    EXPECT_EQ(ParseLibrary(LibraryName(library)).value(), library);
    for (int c = 0; c < kCollectiveCount; ++c) {
      const auto collective = static_cast<Collective>(c);
      for (const int algorithm : Algorithms(library, collective)) {
        const std::string_view name = AlgorithmName(library, collective, algorithm);
        EXPECT_EQ(ParseAlgorithm(library, collective, name).value(), algorithm) << name;
      }
    }
    for (const int protocol : Protocols(library)) {
      EXPECT_EQ(ParseProtocol(library, ProtocolName(library, protocol)).value(), protocol);
    }
  }
}

TEST(VocabularyTest, AnUnknownNameIsAnErrorWithASuggestion) {
  const Status status = ParseAlgorithm(Library::kNccl, Collective::kAllReduce, "badring").status();
  EXPECT_NE(status.message().find("did you mean 'ring'?"), std::string::npos);
  EXPECT_NE(ParseProtocol(Library::kNccl, "ll12").status().message().find("'ll128'"),
            std::string::npos);
  EXPECT_FALSE(ParseCollective(Library::kNccl, "").ok());
  EXPECT_LT(ParseCollective(Library::kNccl, std::string(1 << 20, 'x')).status().message().size(),
            300u);
}

TEST(VocabularyTest, WordsThatCannotBeChosenSayWhy) {
  EXPECT_NE(ParseAlgorithm(Library::kRccl, Collective::kAllReduce, "Direct")
                .status()
                .message()
                .find("measured, not chosen"),
            std::string::npos);
  EXPECT_FALSE(ParseCollective(Library::kNccl, "alltoall").ok());
  EXPECT_TRUE(ParseCollective(Library::kOpenMpi, "alltoall").ok());
  EXPECT_FALSE(ParseProtocol(Library::kOpenMpi, "simple").ok());
}

TEST(VocabularyTest, OpenMpiNumbersDependOnTheCollective) {
  EXPECT_EQ(ParseAlgorithm(Library::kOpenMpi, Collective::kAllReduce, "ring").value(), 4);
  EXPECT_EQ(ParseAlgorithm(Library::kOpenMpi, Collective::kReduceScatter, "ring").value(), 3);
  EXPECT_FALSE(ParseAlgorithm(Library::kOpenMpi, Collective::kBroadcast, "ring").ok());
}

TEST(VocabularyTest, PairsThatNoMachineRuns) {
  EXPECT_TRUE(PairExists(Collective::kAllReduce, kTree, kLl));
  EXPECT_FALSE(PairExists(Collective::kAllReduce, kNvls, kLl));
  EXPECT_FALSE(PairExists(Collective::kAllReduce, kPat, kSimple));
  EXPECT_TRUE(PairExists(Collective::kAllGather, kPat, kSimple));
  EXPECT_FALSE(PairExists(Collective::kBroadcast, kTree, kSimple));
}

TEST(DecisionTest, ReasonsRoundTripAndConfigsReadWell) {
  for (int r = 0; r <= static_cast<int>(Reason::kNumerics); ++r) {
    const auto reason = static_cast<Reason>(r);
    EXPECT_EQ(ParseReason(ReasonName(reason)).value(), reason);
    EXPECT_FALSE(ReasonSentence(reason).empty());
  }
  EXPECT_EQ(ReasonName(Reason::kWarmUp), "warm-up");
  EXPECT_FALSE(ParseReason("").ok());
  EXPECT_EQ(ConfigText(Library::kNccl, Collective::kAllReduce, {}), "library default");
  EXPECT_EQ(ConfigText(Library::kNccl, Collective::kAllReduce, {kTree, kSimple, 4}),
            "tree/simple, 4 channels");
  EXPECT_EQ(ConfigText(Library::kNccl, Collective::kAllReduce, {kKeep, kSimple, 0}), "any/simple");
}

}  // namespace
}  // namespace diapason
