// What 2.31 and later do with the table, beside what earlier ones do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "plugin/abi/host.h"
#include "plugin/abi/selection.h"

namespace diapason::plugin {
namespace {

constexpr int kCells = 21;
const TableRules kOlder(Library::kNccl);
const TableRules kNewer(Library::kNccl, true);

struct Cells {
  float cost[kCells];
  explicit Cells(float all) { std::fill_n(cost, kCells, all); }
  CostTable view() { return {cost, 7, 3}; }
  float& At(int algorithm, int protocol) { return cost[algorithm * 3 + protocol]; }
};

// The choice of 2.31: the smallest of what was on offer, whatever its sign, the last of equals.
int NewerTakes(const Cells& offered, const Cells& answered) {
  int best = -1;
  for (int i = kCells - 1; i >= 0; --i) {
    if (!(offered.cost[i] >= 0.0f)) continue;
    const float least = best < 0 ? std::numeric_limits<float>::max() : answered.cost[best];
    if (answered.cost[i] < least) best = i;
  }
  return best;
}

TEST(TableRulesTest, TheVersionSaysWhichRulesHold) {
  const auto newer = [](int version, int api) {
    Host host;
    host.version = version;
    return host.is_2_31(api);
  };
  EXPECT_FALSE(newer(22809, 5));
  EXPECT_FALSE(newer(23007, 6));
  EXPECT_TRUE(newer(23100, 6));
  EXPECT_TRUE(newer(23206, 7));
  EXPECT_FALSE(newer(0, 6)) << "unknown, and 2.30 speaks v6";
  EXPECT_TRUE(newer(0, 7)) << "unknown, and only later ones speak v7";
  EXPECT_FALSE(newer(22809, 7)) << "a tool that plays 2.28";
}

TEST(TableRulesTest, QuestionsWithoutAnOfferOrAnOperationAreAboutNoCall) {
  Cells cells(-1.0f);
  EXPECT_FALSE(IsAboutACall(1, cells.view()));
  cells.At(kPat, kSimple) = 0.0f;
  EXPECT_TRUE(IsAboutACall(1, cells.view()));
  EXPECT_FALSE(IsAboutACall(0, cells.view()));
  EXPECT_FALSE(IsAboutACall(-1, cells.view()));
  cells.At(kPat, kSimple) = std::nanf("");
  EXPECT_FALSE(IsAboutACall(1, cells.view()));
  cells.At(kPat, kSimple) = -0.5f;
  EXPECT_FALSE(IsAboutACall(7, cells.view()));
}

TEST(TableRulesTest, TheLastOfEqualCostsIsTheLibrarysChoice) {
  Cells cells(-1.0f);
  for (const int algorithm : {kTree, kRing, kNvls}) cells.At(algorithm, kSimple) = 10.0f;
  cells.At(kRing, kLl) = 10.0f;
  EXPECT_EQ(CheapestPair(kOlder, cells.view(), {}).algorithm, kTree);
  EXPECT_EQ(CheapestPair(kNewer, cells.view(), {}).algorithm, kNvls);
  EXPECT_EQ(CheapestPair(kOlder, cells.view(), {kRing, kKeep, 0}).protocol, kLl);
  EXPECT_EQ(CheapestPair(kNewer, cells.view(), {kRing, kKeep, 0}).protocol, kSimple);
  cells.At(kRing, kLl) = 9.0f;
  EXPECT_EQ(CheapestPair(kNewer, cells.view(), {}).protocol, kLl);
}

TEST(TableRulesTest, GuardedRingIsKnownByItsEstimate) {
  Cells cells(-1.0f);
  cells.At(kTree, kSimple) = 50.0f;
  cells.At(kRing, kSimple) = 40.0f * 1024;
  const auto fits = [&](const TableRules& rules) {
    return PairFits(rules, kRing, kSimple, 1 << 20, cells.view());
  };
  EXPECT_EQ(fits(kNewer), Reason::kFp8Guard);
  EXPECT_EQ(fits(kOlder), Reason::kRow) << "before 2.31 a disabled entry tells";
  cells.At(kRing, kSimple) = 50.0f * 100;
  EXPECT_EQ(fits(kNewer), Reason::kRow);
  cells.At(kTree, kSimple) = -1.0f;
  cells.At(kRing, kSimple) = 40.0f * 1024;
  EXPECT_EQ(fits(kNewer), Reason::kRow) << "there is nothing but ring";
}

TEST(TableRulesTest, TheLibraryTakesTheSameFromWhatIsReadBack) {
  std::mt19937 random(7);
  const float odd[] = {-1.0f, -1024.0f, 0.0f, 5.0f, 1e9f, -0.0f, std::nanf("")};
  for (int round = 0; round < 20000; ++round) {
    Cells offered(-1.0f);
    Cells answered(-1.0f);
    for (int i = 0; i < kCells; ++i) {
      if (random() % 2 == 0) offered.cost[i] = static_cast<float>(random() % 9 + 1);
      answered.cost[i] = random() % 3 == 0 ? odd[random() % 7] : offered.cost[i];
    }
    Cells read = answered;
    CostTable table = read.view();
    KeepWhatIsReadBack(offered.cost, &table);
    const int taken = NewerTakes(offered, answered);
    ASSERT_EQ(NewerTakes(offered, read), taken);
    for (int i = 0; i < kCells; ++i) {
      ASSERT_EQ(read.cost[i] < 0.0f, offered.cost[i] < 0.0f) << "nothing else is offered";
    }
    const TableChoice predicted = CheapestPair(kNewer, table, {});
    if (predicted.applicable) {
      ASSERT_EQ(predicted.algorithm * 3 + predicted.protocol, taken);
    }
    if (taken < 0 || read.cost[taken] >= kPushedAway) continue;
    // And what is then chosen wins over whatever the other tuner wrote.
    for (const Library library : {Library::kNccl, Library::kRccl}) {
      for (int i = 0; i < kCells; ++i) {
        if (!Available(read.cost[i])) continue;
        Cells chosen = read;
        CostTable view = chosen.view();
        ApplyToTable(library, i / 3, i % 3, &view);
        ASSERT_EQ(NewerTakes(offered, chosen), i);
      }
    }
  }
}

}  // namespace
}  // namespace diapason::plugin
