#include "plugin/abi/selection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace diapason::plugin {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");
constexpr Library kTwoLibraries[] = {Library::kNccl, Library::kRccl};

// A table that owns its cells. Every entry is -1 at first.
class Table {
 public:
  explicit Table(int algorithms = 7, int protocols = 3)
      : cells_(static_cast<size_t>(algorithms) * static_cast<size_t>(protocols), -1.0f),
        table_{cells_.data(), algorithms, protocols} {}
  Table(const Table& other)
      : cells_(other.cells_),
        table_{cells_.data(), other.table_.algorithms, other.table_.protocols} {}
  Table& operator=(const Table&) = delete;

  float& At(int algorithm, int protocol) {
    return table_.cells[algorithm * table_.protocols + protocol];
  }
  CostTable* view() { return &table_; }
  std::vector<float>& cells() { return cells_; }

 private:
  std::vector<float> cells_;
  CostTable table_;
};

// The choice of NCCL and RCCL: the smallest non-negative entry, the first of equals.
std::pair<int, int> LibraryTakes(Table* table) {
  std::pair<int, int> best{kKeep, kKeep};
  float best_cost = 3600000000.0f;
  const CostTable& view = *table->view();
  for (int a = 0; a < view.algorithms; ++a) {
    for (int p = 0; p < view.protocols; ++p) {
      const float cost = view.At(a, p);
      if (cost >= 0.0f && cost < best_cost) {
        best_cost = cost;
        best = {a, p};
      }
    }
  }
  return best;
}

Question Asking(uint64_t bytes) {
  Question question;
  question.bytes = bytes;
  return question;
}

TableChoice Choose(Library library, const Config& wanted, Table* table, uint64_t bytes = 1 << 20) {
  return ChooseFromTable(library, wanted, Asking(bytes), *table->view());
}

void ExpectRefused(const TableChoice& choice, Reason reason) {
  EXPECT_FALSE(choice.applicable);
  EXPECT_EQ(ReasonName(choice.reason), ReasonName(reason));
}

void ExpectChosen(const TableChoice& choice, int algorithm, int protocol) {
  EXPECT_TRUE(choice.applicable);
  EXPECT_EQ(ReasonName(choice.reason), ReasonName(Reason::kRow));
  EXPECT_EQ(choice.algorithm, algorithm);
  EXPECT_EQ(choice.protocol, protocol);
}

// NCCL's usual 7 x 3 and 6 x 3 before 2.23, RCCL's with a fourth protocol, and odd ones.
const std::pair<int, int> kSizes[] = {{7, 3}, {6, 3}, {7, 4}, {6, 4}, {10, 4}, {2, 1}};

TEST(CostTableTest, OnlyATableWithCellsIsValid) {
  float cell = 0;
  EXPECT_TRUE((CostTable{&cell, 1, 1}.Valid()));
  EXPECT_FALSE((CostTable{nullptr, 7, 3}.Valid()));
  EXPECT_FALSE((CostTable{&cell, 0, 3}.Valid()));
  EXPECT_FALSE((CostTable{&cell, 7, -1}.Valid()));
  EXPECT_FALSE((CostTable{&cell, 65, 3}.Valid()));
  EXPECT_FALSE((CostTable{&cell, 7, INT32_MAX}.Valid()));
}

TEST(CostTableTest, PairsOutsideTheTableAreNotThere) {
  const CostTable table = *Table(6, 3).view();
  EXPECT_TRUE(table.Has(kTree, kLl));
  EXPECT_TRUE(table.Has(kNvlsTree, kSimple));
  EXPECT_FALSE(table.Has(kPat, kSimple));
  EXPECT_FALSE(table.Has(kRing, 3));
  EXPECT_FALSE(table.Has(-1, kLl));
  EXPECT_FALSE(table.Has(kRing, -1));
}

TEST(CheapestPairTest, IsWhatTheLibraryTakesByItself) {
  Table table;
  EXPECT_FALSE(CheapestPair(Library::kNccl, *table.view(), {}).applicable);
  EXPECT_EQ(CheapestPair(Library::kNccl, *table.view(), {}).algorithm, kKeep);
  table.At(kRing, kSimple) = 20;
  table.At(kNvls, kSimple) = 10;
  table.At(kPat, kSimple) = 10;
  const TableChoice cheapest = CheapestPair(Library::kNccl, *table.view(), {});
  EXPECT_TRUE(cheapest.applicable);
  EXPECT_EQ(cheapest.algorithm, kNvls) << "the first of equals";
  EXPECT_EQ(CheapestPair(Library::kNccl, *table.view(), {kRing, kKeep, 0}).algorithm, kRing);
  EXPECT_FALSE(CheapestPair(Library::kNccl, *table.view(), {kTree, kKeep, 0}).applicable);
}

TEST(ChooseTest, AnAvailablePairIsChosen) {
  for (const Library library : kTwoLibraries) {
    for (const auto& [algorithms, protocols] : kSizes) {
      Table table(algorithms, protocols);
      table.At(kRing, 0) = 5;
      ExpectChosen(Choose(library, {kRing, 0, 0}, &table), kRing, 0);
    }
    Table table(7, 4);
    table.At(kPat, 3) = 0;
    ExpectChosen(Choose(library, {kPat, 3, 0}, &table), kPat, 3);
  }
}

TEST(ChooseTest, AnEntryThatIsNotOnOfferIsNeverChosen) {
  for (const Library library : kTwoLibraries) {
    for (const float cost : {-1.0f, -0.5f, -1024.0f, -kInfinity, kNan, 1e9f, 2e9f, kInfinity}) {
      Table table;
      table.At(kTree, kLl) = cost;
      ExpectRefused(Choose(library, {kTree, kLl, 0}, &table), Reason::kUnavailable);
      ExpectRefused(Choose(library, {kTree, kKeep, 0}, &table), Reason::kUnavailable);
      ExpectRefused(Choose(library, {kKeep, kLl, 0}, &table), Reason::kUnavailable);
      ExpectRefused(Choose(library, {kKeep, kKeep, 4}, &table), Reason::kUnavailable);
      table.At(kTree, kSimple) = 3;
      ExpectChosen(Choose(library, {kTree, kKeep, 0}, &table), kTree, kSimple);
    }
  }
}

TEST(ChooseTest, APairBeyondTheTableIsUnavailable) {
  Table table(6, 3);
  for (float& cell : table.cells()) cell = 1;
  ExpectRefused(Choose(Library::kNccl, {kPat, kSimple, 0}, &table), Reason::kUnavailable);
  ExpectRefused(Choose(Library::kNccl, {kPat, kKeep, 0}, &table), Reason::kUnavailable);
  ExpectRefused(Choose(Library::kNccl, {kRing, 3, 0}, &table), Reason::kUnavailable);
  ExpectRefused(Choose(Library::kNccl, {kKeep, 3, 0}, &table), Reason::kUnavailable);
  ExpectRefused(Choose(Library::kNccl, {15, 7, 0}, &table), Reason::kUnavailable);
}

TEST(ChooseTest, HalfAPairStandsForTheCheapestWithIt) {
  Table table;
  table.At(kTree, kLl) = 9;
  table.At(kTree, kSimple) = 4;
  table.At(kRing, kLl) = 3;
  table.At(kRing, kLl128) = 1;
  ExpectChosen(Choose(Library::kNccl, {kTree, kKeep, 0}, &table), kTree, kSimple);
  ExpectChosen(Choose(Library::kNccl, {kKeep, kLl, 0}, &table), kRing, kLl);
}

TEST(ChooseTest, ChannelsAloneGoWithThePairTheLibraryTakes) {
  Table table;
  table.At(kTree, kSimple) = 4;
  table.At(kRing, kLl) = 3;
  ExpectChosen(Choose(Library::kNccl, {kKeep, kKeep, 8}, &table), kRing, kLl);
  ExpectChosen(Choose(Library::kRccl, {}, &table), kRing, kLl);
}

TEST(ChooseTest, RingIsLeftAloneWhereTheLibraryGuardsIt) {
  Table table;
  table.At(kRing, kLl) = -1024.0f;
  table.At(kRing, kSimple) = 10240;
  table.At(kTree, kSimple) = 20;
  for (const Library library : kTwoLibraries) {
    ExpectRefused(Choose(library, {kRing, kSimple, 0}, &table), Reason::kFp8Guard);
    ExpectRefused(Choose(library, {kRing, kKeep, 0}, &table), Reason::kFp8Guard);
    ExpectChosen(Choose(library, {kTree, kSimple, 0}, &table), kTree, kSimple);
  }
  ExpectChosen(Choose(Library::kNccl, {kKeep, kSimple, 0}, &table), kTree, kSimple);
  table.At(kRing, kLl) = -1.0f;
  ExpectChosen(Choose(Library::kNccl, {kRing, kSimple, 0}, &table), kRing, kSimple);
  table.At(kTree, kLl) = -1024.0f;
  ExpectChosen(Choose(Library::kNccl, {kRing, kSimple, 0}, &table), kRing, kSimple);
}

TEST(ChooseTest, RcclsTreeNeeds64Bytes) {
  Table table;
  table.At(kTree, kLl) = 1;
  table.At(kRing, kLl) = 2;
  for (const uint64_t bytes : {0, 1, 63}) {
    ExpectRefused(Choose(Library::kRccl, {kTree, kLl, 0}, &table, bytes), Reason::kTreeTooSmall);
    ExpectRefused(Choose(Library::kRccl, {kTree, kKeep, 0}, &table, bytes), Reason::kTreeTooSmall);
    ExpectChosen(Choose(Library::kNccl, {kTree, kLl, 0}, &table, bytes), kTree, kLl);
    ExpectChosen(Choose(Library::kRccl, {kRing, kLl, 0}, &table, bytes), kRing, kLl);
  }
  ExpectChosen(Choose(Library::kRccl, {kTree, kLl, 0}, &table, 64), kTree, kLl);
}

TEST(ApplyTest, NcclKeepsTheEstimateAndPushesTheOthersAway) {
  Table table;
  table.At(kTree, kLl) = 1;
  table.At(kTree, kSimple) = 0;
  table.At(kRing, kSimple) = 30;
  table.At(kNvls, kSimple) = 5e8f;
  ApplyToTable(Library::kNccl, kRing, kSimple, table.view());
  EXPECT_EQ(table.At(kRing, kSimple), 30);
  EXPECT_EQ(table.At(kTree, kLl), kPushedAway);
  EXPECT_EQ(table.At(kTree, kSimple), kPushedAway);
  EXPECT_EQ(table.At(kNvls, kSimple), kPushedAway);
  EXPECT_LT(kPushedAway, 3.6e9f) << "where older libraries start their search";
}

TEST(ApplyTest, RcclGetsExactlyZeroAndNoOtherZeroWins) {
  Table table;
  table.At(kTree, kLl) = 0;
  table.At(kTree, kLl128) = -0.0f;
  table.At(kRing, kLl) = 1e-30f;
  table.At(kRing, kSimple) = 30;
  table.At(kPat, kSimple) = 0;
  ApplyToTable(Library::kRccl, kRing, kSimple, table.view());
  EXPECT_EQ(table.At(kRing, kSimple), 0.0f);
  EXPECT_FALSE(std::signbit(table.At(kRing, kSimple)));
  EXPECT_EQ(table.At(kRing, kLl), 1e-30f) << "estimates stay";
  EXPECT_GT(table.At(kTree, kLl), 0);
  EXPECT_GT(table.At(kTree, kLl128), 0);
  EXPECT_GT(table.At(kPat, kSimple), 0);
  EXPECT_EQ(LibraryTakes(&table), std::pair(kRing, kSimple));
}

float RandomCost(std::mt19937* random) {
  const float costs[] = {-1,   -1,     -1024, -kInfinity, kNan,         0, -0.0f, 1e-38f,
                         1e9f, 3.5e9f, 5e9f,  kInfinity,  999999936.0f, 7, 7,     8};
  const size_t pick = (*random)() % (2 * std::size(costs));
  return pick < std::size(costs) ? costs[pick] : static_cast<float>((*random)() % 1000000) / 7;
}

TEST(ApplyTest, TheLibraryTakesTheChosenPairAndNothingElseBecomesAvailable) {
  std::mt19937 random(5);
  size_t applied = 0;
  for (int round = 0; round < 40000; ++round) {
    const auto [algorithms, protocols] = kSizes[random() % std::size(kSizes)];
    Table table(algorithms, protocols);
    for (float& cell : table.cells()) cell = RandomCost(&random);
    const Library library = kTwoLibraries[round % 2];
    Config wanted;
    wanted.algorithm = static_cast<int>(random() % 8) - 1;
    wanted.protocol = static_cast<int>(random() % 5) - 1;
    const TableChoice choice = Choose(library, wanted, &table, random() % 128);
    if (!choice.applicable) continue;
    ++applied;
    const bool names_algorithm = wanted.algorithm != kKeep;
    ASSERT_TRUE(!names_algorithm || choice.algorithm == wanted.algorithm);
    ASSERT_TRUE(wanted.protocol == kKeep || choice.protocol == wanted.protocol);

    Table after = table;
    ApplyToTable(library, choice.algorithm, choice.protocol, after.view());
    ASSERT_EQ(LibraryTakes(&after), std::pair(choice.algorithm, choice.protocol));
    const float chosen = table.At(choice.algorithm, choice.protocol);
    ASSERT_TRUE(Available(chosen));
    ASSERT_EQ(after.At(choice.algorithm, choice.protocol),
              library == Library::kNccl ? chosen : 0.0f);
    for (size_t i = 0; i < table.cells().size(); ++i) {
      const float before = table.cells()[i];
      const float now = after.cells()[i];
      if (Available(before)) {
        ASSERT_GE(now, 0.0f) << "nothing is disabled by a negative number";
      } else {
        ASSERT_TRUE(now == before || std::isnan(before)) << before << " became " << now;
        ASSERT_FALSE(Available(now));
      }
    }
  }
  EXPECT_GT(applied, 1000u) << "too few choices to tell";
}

// One pair, asked for under an API that has no table.
TableChoice Pair(const Config& wanted, const PairSupport& support,
                 Collective collective = Collective::kAllReduce, Library library = Library::kNccl,
                 uint64_t bytes = 1 << 20) {
  Question question;
  question.collective = collective;
  question.bytes = bytes;
  return ChoosePair(library, wanted, question, support);
}

PairSupport Support(int64_t nodes, bool collnet, bool nvls, bool ll128) {
  return {{nodes, nodes * 8}, collnet, nvls, ll128};
}

TEST(ChoosePairTest, TreeAndRingWorkEverywhereAndLl128WhereItIsKnownTo) {
  for (const int algorithm : {kTree, kRing}) {
    for (const int64_t nodes : {0, 1, 2}) {
      const PairSupport none = Support(nodes, false, false, false);
      ExpectChosen(Pair({algorithm, kLl, 0}, none), algorithm, kLl);
      ExpectChosen(Pair({algorithm, kSimple, 0}, none), algorithm, kSimple);
      ExpectRefused(Pair({algorithm, kLl128, 0}, none), Reason::kUnknownSupport);
      ExpectChosen(Pair({algorithm, kLl128, 0}, Support(nodes, false, false, true)), algorithm,
                   kLl128);
    }
  }
}

TEST(ChoosePairTest, OtherAlgorithmsOnlyWhereTheLibrarySaysTheyWork) {
  for (const int64_t nodes : {0, 1, 2}) {
    for (int mask = 0; mask < 8; ++mask) {
      const bool collnet = (mask & 1) != 0;
      const bool nvls = (mask & 2) != 0;
      const PairSupport support = Support(nodes, collnet, nvls, (mask & 4) != 0);
      const auto expect = [&](int algorithm, bool works) {
        const TableChoice choice = Pair({algorithm, kSimple, 0}, support);
        if (works) {
          ExpectChosen(choice, algorithm, kSimple);
        } else {
          ExpectRefused(choice, Reason::kUnknownSupport);
        }
      };
      expect(kCollNetChain, collnet && nodes > 1);
      expect(kNvls, nvls && nodes == 1);
      expect(kNvlsTree, nvls && nodes > 1);
      expect(kCollNetDirect, false);
      ExpectRefused(Pair({kPat, kSimple, 0}, support, Collective::kAllGather),
                    Reason::kUnknownSupport);
    }
  }
}

TEST(ChoosePairTest, WhatNoMachineRunsIsRefusedWhateverIsSupported) {
  const PairSupport all = Support(2, true, true, true);
  ExpectRefused(Pair({kNvlsTree, kLl, 0}, all), Reason::kUnavailable);
  ExpectRefused(Pair({kPat, kSimple, 0}, all), Reason::kUnavailable);
  ExpectRefused(Pair({kTree, kSimple, 0}, all, Collective::kBroadcast), Reason::kUnavailable);
  ExpectRefused(Pair({kTree, kSimple, 0}, all, Collective::kAllGather), Reason::kUnavailable);
  ExpectChosen(Pair({kRing, kSimple, 0}, all, Collective::kBroadcast), kRing, kSimple);
}

TEST(ChoosePairTest, HalfAPairCannotBeSaidAndChannelsAloneCan) {
  const PairSupport all = Support(1, true, true, true);
  ExpectRefused(Pair({kRing, kKeep, 4}, all), Reason::kPartialRow);
  ExpectRefused(Pair({kKeep, kSimple, 4}, all), Reason::kPartialRow);
  ExpectChosen(Pair({kKeep, kKeep, 4}, all), kKeep, kKeep);
}

TEST(ChoosePairTest, RcclsTreeNeeds64Bytes) {
  const PairSupport none = Support(2, false, false, false);
  const Config tree{kTree, kLl, 0};
  const auto at = [&](Library library, uint64_t bytes) {
    return Pair(tree, none, Collective::kAllReduce, library, bytes);
  };
  ExpectRefused(at(Library::kRccl, 63), Reason::kTreeTooSmall);
  ExpectChosen(at(Library::kRccl, 64), kTree, kLl);
  ExpectChosen(at(Library::kNccl, 0), kTree, kLl);
}

TEST(SafeChannelsTest, CountsAreLeftAloneWhereTheLibraryDoesNotCheckThem) {
  for (const Library library : kTwoLibraries) {
    for (const int64_t nodes : {0, 1, 2}) {
      const Shape shape{nodes, nodes * 8};
      EXPECT_EQ(SafeChannels(library, 4, kCollNetDirect, shape), 0);
      EXPECT_EQ(SafeChannels(library, 4, kCollNetChain, shape), 0);
      EXPECT_EQ(SafeChannels(library, 4, kNvls, shape), nodes == 1 ? 4 : 0) << nodes;
      EXPECT_EQ(SafeChannels(library, 4, kNvlsTree, shape), 4);
      EXPECT_EQ(SafeChannels(library, 4, kRing, shape), 4);
      EXPECT_EQ(SafeChannels(library, 4, kTree, shape), 4);
      EXPECT_EQ(SafeChannels(library, 4, kPat, shape), 4);
    }
  }
}

TEST(SafeChannelsTest, CountsStayWithinWhatTheLibraryHolds) {
  const Shape shape{2, 16};
  for (const int none : {0, -1, -100, INT32_MIN}) {
    EXPECT_EQ(SafeChannels(Library::kNccl, none, kRing, shape), 0) << none;
  }
  EXPECT_EQ(SafeChannels(Library::kNccl, 64, kRing, shape), 64);
  EXPECT_EQ(SafeChannels(Library::kNccl, 65, kRing, shape), 64);
  EXPECT_EQ(SafeChannels(Library::kNccl, INT32_MAX, kTree, shape), 64);
  EXPECT_EQ(SafeChannels(Library::kRccl, 127, kRing, shape), 127);
  EXPECT_EQ(SafeChannels(Library::kRccl, 128, kRing, shape), 127) << "a signed byte";
  EXPECT_EQ(SafeChannels(Library::kRccl, 112, kTree, shape), 64);
}

}  // namespace
}  // namespace diapason::plugin
