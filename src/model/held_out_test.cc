#include "model/held_out.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace diapason::model {
namespace {

// Deviations of the neighbours and the trees with these standard deviations.
std::vector<HiddenCell> Draw(double neighbours, double said, double trees, size_t count = 400) {
  const CounterRandom random(1, 1);
  std::vector<HiddenCell> cells;
  for (size_t i = 0; i < count; ++i) {
    cells.push_back({neighbours * random.Normal(2 * i), said, trees * random.Normal(2 * i + 1)});
  }
  return cells;
}

TEST(HeldOut, TheBetterOfTheTwoCounts) {
  const HeldOut neighbours(Draw(0.02, 0.05, 0.4), 40, 0.5);
  EXPECT_NEAR(neighbours.Combine({1, 0.05}, 2).log_seconds, 1, 0.05);
  const HeldOut trees(Draw(0.4, 0.1, 0.04), 40, 0.5);
  EXPECT_NEAR(trees.Combine({1, 0.1}, 2).log_seconds, 2, 0.15);
}

TEST(HeldOut, DoubtsHoldWhatTheyPromise) {
  // The neighbours' model says 0.05 where it is off by 0.2.
  const std::vector<HiddenCell> cells = Draw(0.2, 0.05, 0.3);
  const HeldOut held_out(cells, 100, 0.3);
  EXPECT_NEAR(held_out.factor(), 4, 0.6);
  EXPECT_NEAR(held_out.tree_error(), 0.3, 0.04);
  size_t held = 0;
  for (const HiddenCell& cell : cells) {
    const Estimate both = held_out.Combine({cell.neighbours, cell.doubt}, cell.trees);
    held += std::fabs(both.log_seconds) <= 1.645 * both.doubt ? 1 : 0;
  }
  EXPECT_GE(held, cells.size() * 86 / 100);
  EXPECT_LE(held, cells.size() * 95 / 100);
}

TEST(HeldOut, AFewLargeDeviationsDoNotDecide) {
  std::vector<HiddenCell> cells = Draw(0.02, 0.02, 0.1);
  for (size_t i = 0; i < cells.size(); i += 20) cells[i].neighbours = 3;
  EXPECT_LT(HeldOut(cells, 40, 0.1).factor(), 1.6);
}

TEST(HeldOut, FewGroupsCountLittle) {
  const std::vector<HiddenCell> cells = Draw(0.01, 0.05, 0.01, 8);
  const HeldOut few(cells, 1, 0.5);
  const HeldOut many(cells, 100, 0.5);
  EXPECT_GT(few.factor(), many.factor());
  EXPECT_GT(few.tree_error(), many.tree_error());
  // Nothing hidden: what holds before.
  EXPECT_EQ(HeldOut({}, 0, 0.5).factor(), 1);
  EXPECT_EQ(HeldOut({}, 0, 0.5).tree_error(), 0.5);
}

TEST(HeldOut, WhatIsUnlikeTheRestIsDoubtedMore) {
  const HeldOut held_out(Draw(0.1, 0.1, 0.1), 40, 0.1);
  EXPECT_GT(held_out.Combine({1, 1}, 1, 2).doubt, held_out.Combine({1, 1}, 1).doubt);
}

TEST(NinetyPercentDeviation, OfMagnitudes) {
  EXPECT_EQ(NinetyPercentDeviation({}), 0);
  EXPECT_NEAR(NinetyPercentDeviation({-1.6449, 1.6449}), 1, 1e-9);
}

}  // namespace
}  // namespace diapason::model
