#include "domain/collectives.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/text.h"

namespace diapason {
namespace {

TEST(CollectivesTest, EveryOperationAndEveryCollectiveHasARow) {
  std::set<Operation> operations;
  std::set<Collective> collectives;
  for (const OperationFacts& facts : kOperations) {
    EXPECT_TRUE(operations.insert(facts.operation).second) << facts.name << " has two rows";
    if (facts.collective) collectives.insert(*facts.collective);
    EXPECT_EQ(FactsOf(facts.operation).name, facts.name);
  }
  for (int i = 0; i < kOperationCount; ++i) {
    EXPECT_TRUE(operations.contains(static_cast<Operation>(i))) << "operation " << i;
  }
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    EXPECT_TRUE(collectives.contains(collective)) << "collective " << i;
    EXPECT_EQ(CollectiveOf(OperationOf(collective)), collective) << i;
  }
}

TEST(CollectivesTest, NoRowHasAHole) {
  std::set<std::string> names;
  std::set<int> numbers;
  for (const OperationFacts& facts : kOperations) {
    for (const char* text :
         {facts.name, facts.measured, facts.aliases, facts.tests, facts.nccl, facts.mpi}) {
      ASSERT_NE(text, nullptr) << "operation " << static_cast<int>(facts.operation);
    }
    EXPECT_TRUE(names.insert(FoldName(facts.name)).second) << facts.name;
    const bool measured = *facts.measured != '\0';
    EXPECT_EQ(measured, *facts.tests != '\0') << facts.name;
    EXPECT_EQ(std::string(facts.mpi).starts_with("MPI_"), facts.openmpi >= 0) << facts.name;
    EXPECT_TRUE(facts.openmpi < 0 || numbers.insert(facts.openmpi).second) << facts.name;
    if (!facts.collective) {
      EXPECT_EQ(facts.openmpi, -1) << facts.name;
      EXPECT_STREQ(facts.nccl, "") << facts.name;
      continue;
    }
    EXPECT_TRUE(measured) << facts.name;
    EXPECT_NE(facts.in, Extent::kNothing) << facts.name;
    EXPECT_NE(facts.out, Extent::kNothing) << facts.name;
    EXPECT_EQ(*facts.nccl != '\0', CanChoose(Library::kNccl, *facts.collective)) << facts.name;
    EXPECT_EQ(facts.openmpi >= 0, !Algorithms(Library::kOpenMpi, *facts.collective).empty())
        << facts.name;
  }
}

TEST(CollectivesTest, EveryNameReadsBack) {
  for (const OperationFacts& facts : kOperations) {
    if (*facts.measured == '\0') continue;
    ASSERT_NE(FindMeasured(facts.measured), nullptr) << facts.name;
    EXPECT_EQ(FindMeasured(facts.measured)->operation, facts.operation) << facts.name;
    if (!facts.collective) continue;
    EXPECT_EQ(CollectiveName(*facts.collective), facts.measured);
    for (const char* name : {facts.measured, facts.name, facts.tests}) {
      EXPECT_EQ(ParseCollective(Library::kGloo, name).value(), *facts.collective) << name;
    }
    for (const std::string_view alias : Split(facts.aliases, ' ')) {
      if (alias.empty()) continue;
      EXPECT_EQ(ParseCollective(Library::kGloo, alias).value(), *facts.collective) << alias;
    }
  }
  EXPECT_EQ(FindMeasured(""), nullptr);
  EXPECT_EQ(FindMeasured("barrier"), nullptr);
}

TEST(CollectivesTest, WhatFollowsFromARow) {
  EXPECT_TRUE(HasRoot(Operation::kBroadcast));
  EXPECT_FALSE(HasRoot(Operation::kSend));
  EXPECT_TRUE(HasPeer(Operation::kRecv));
  EXPECT_FALSE(HasPeer(Operation::kReduce));
  EXPECT_TRUE(Reduces(Operation::kReduceScatter));
  EXPECT_FALSE(Reduces(Operation::kAllGather));
  for (const Operation operation : {Operation::kAllToAll, Operation::kSend, Operation::kBarrier}) {
    EXPECT_FALSE(HasInPlace(operation)) << FactsOf(operation).name;
  }
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kReduce, Operation::kAllGather}) {
    EXPECT_TRUE(HasInPlace(operation)) << FactsOf(operation).name;
  }
  EXPECT_TRUE(CountsAllRanks(Operation::kAllToAll));
  EXPECT_FALSE(CountsAllRanks(Operation::kBroadcast));
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kReduceScatter, 8), 0.875);
  EXPECT_DOUBLE_EQ(BusFactor(Operation::kReduce, 8), 1);
}

TEST(CollectivesTest, ATestedNameComesBeforeThoseItContains) {
  const std::span<const TestedCollective> tested = TestedCollectives();
  for (size_t i = 0; i < tested.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_EQ(tested[i].name.find(tested[j].name), std::string_view::npos) << tested[i].name;
    }
  }
}

}  // namespace
}  // namespace diapason
