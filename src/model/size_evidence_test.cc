#include "model/size_evidence.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/gap.h"
#include "model/plan.h"
#include "model/testing.h"
#include "policy/table.h"

namespace diapason::model {
namespace {

// Two samples a cell, in 15 % noise.
Recipe Weak(std::function<double(uint64_t bytes, const Config& config)> factor) {
  Recipe recipe = Flat(std::move(factor));
  recipe.repeats = 2;
  recipe.noise = 0.15;
  return recipe;
}

double POf(const Recipe& recipe) {
  const Grid grid = MeasureGrid(recipe);
  return SizeEvidence(grid.scenes[0]).P();
}

TEST(SizeEvidence, AGainThatLastsOverSizesIsProven) {
  Recipe recipe = Weak([](uint64_t, const Config& config) {
    return config == kBest ? 0.65 : config.IsDefault() ? 1.0 : 1.1;
  });
  size_t proven = 0;
  for (recipe.seed = 1; recipe.seed <= 20; ++recipe.seed) proven += POf(recipe) < 0.01 ? 1 : 0;
  EXPECT_GE(proven, 18U);
}

TEST(SizeEvidence, ConfigurationsThatTakeOverFromEachOtherAreOneTest) {
  const Config small{kTree, kLl, 8, 0};
  Recipe recipe = Weak([&](uint64_t bytes, const Config& config) {
    const bool best = bytes < (128 << 10) ? config == small : config == kBest;
    return best ? 0.6 : config.IsDefault() ? 1.0 : 1.1;
  });
  size_t proven = 0;
  for (recipe.seed = 1; recipe.seed <= 20; ++recipe.seed) proven += POf(recipe) < 0.01 ? 1 : 0;
  EXPECT_GE(proven, 16U);
}

TEST(SizeEvidence, NoiseIsProvenAsOftenAsItMay) {
  for (const int repeats : {2, 3, 5}) {
    Recipe recipe = Weak([](uint64_t, const Config&) { return 1.0; });
    recipe.repeats = repeats;
    size_t below = 0;
    for (recipe.seed = 1; recipe.seed <= 200; ++recipe.seed) below += POf(recipe) < 0.05 ? 1 : 0;
    EXPECT_LE(below, 20U) << repeats;
  }
}

TEST(SizeEvidence, OneFamilyCanBeAskedFor) {
  Recipe recipe = Weak([](uint64_t, const Config& config) {
    return config == kBest ? 0.5 : config.IsDefault() ? 1.0 : 1.2;
  });
  const Grid grid = MeasureGrid(recipe);
  SizeEvidence evidence(grid.scenes[0]);
  const ConfigFamily fast = FamilyOf(kBest);
  const ConfigFamily slow = FamilyOf(Config{kTree, kLl, 8, 0});
  EXPECT_LT(evidence.P(&fast), 0.001);
  EXPECT_GT(evidence.P(&slow), 0.1);
  EXPECT_EQ(evidence.P(&fast), SizeEvidence(grid.scenes[0]).P(&fast)) << "draws are repeatable";
}

TEST(SizeEvidence, SingleSamplesAndFewSizesProveNothing) {
  Recipe recipe = Weak([](uint64_t, const Config& config) { return config == kBest ? 0.1 : 1.0; });
  EXPECT_LT(POf(recipe), 0.001);
  recipe.sizes.resize(3);
  EXPECT_EQ(POf(recipe), 1);
  recipe = Weak([](uint64_t, const Config& config) { return config == kBest ? 0.1 : 1.0; });
  recipe.repeats = 1;
  EXPECT_EQ(POf(recipe), 1);
}

double GainAt(const MeasuredSize& context, const Config& config) {
  return context.cells[*context.library_default].log_seconds - context.Find(config)->log_seconds;
}

TEST(Smoothed, NeighboursTakePartWhereTheNoiseIsLarge) {
  Recipe recipe = Weak(BestIsAFifthFaster);
  double raw = 0;
  double smooth = 0;
  for (recipe.seed = 1; recipe.seed <= 20; ++recipe.seed) {
    const MeasuredPlace scene = MeasureGrid(recipe).scenes[0];
    const MeasuredPlace together = Smoothed(scene, 0.05);
    for (size_t i = 0; i < scene.contexts.size(); ++i) {
      raw += std::pow(GainAt(scene.contexts[i], kBest) - std::log(1.25), 2);
      smooth += std::pow(GainAt(together.contexts[i], kBest) - std::log(1.25), 2);
      EXPECT_LT(together.contexts[i].Find(kBest)->noise, scene.contexts[i].Find(kBest)->noise);
    }
  }
  EXPECT_LT(smooth, 0.6 * raw);
}

TEST(Smoothed, WhatIsKnownWellStays) {
  Recipe recipe = Flat(Smooth);
  recipe.noise = 0.001;
  const MeasuredPlace scene = MeasureGrid(recipe).scenes[0];
  const MeasuredPlace together = Smoothed(scene, 0.15);
  for (size_t i = 0; i < scene.contexts.size(); ++i) {
    EXPECT_NEAR(GainAt(together.contexts[i], kBest), GainAt(scene.contexts[i], kBest), 0.001);
  }
}

TEST(Smoothed, IsForPlacesWhereMostCellsAreNoisy) {
  const MeasuredPlace noisy = MeasureGrid(Weak(BestIsAFifthFaster)).scenes[0];
  EXPECT_TRUE(NoiseHidesSteps(noisy, 0.15));
  Recipe recipe = Flat(BestIsAFifthFaster);
  recipe.noise = 0.01;
  MeasuredPlace quiet = MeasureGrid(recipe).scenes[0];
  EXPECT_FALSE(NoiseHidesSteps(quiet, 0.15));
  // A disturbed size of the library's own choice does not change that.
  quiet.contexts[4].cells[*quiet.contexts[4].library_default].noise = 0.5;
  EXPECT_FALSE(NoiseHidesSteps(quiet, 0.15));
}

// What was measured in another run is not compared with the library's own choice.
TEST(Smoothed, UnpairedCellsTakeNoPart) {
  MeasuredPlace scene = MeasureGrid(Weak(BestIsAFifthFaster)).scenes[0];
  for (MeasuredConfig& cell : scene.contexts[3].cells) {
    if (cell.config == kBest) cell.paired = false;
  }
  const MeasuredPlace together = Smoothed(scene, 0.05);
  EXPECT_EQ(together.contexts[3].Find(kBest)->log_seconds,
            scene.contexts[3].Find(kBest)->log_seconds);
}

// Hardly a cell tells it alone; the gain is the same at all sizes.
TEST(PlannedPolicy, AGainInMuchNoiseIsPlannedAtNearlyAllSizes) {
  Recipe recipe = Weak([](uint64_t, const Config& config) {
    return config == kBest ? 0.7 : config.IsDefault() ? 1.0 : 1.3;
  });
  size_t chosen = 0;
  size_t sizes = 0;
  for (recipe.seed = 1; recipe.seed <= 10; ++recipe.seed) {
    const Grid grid = MeasureGrid(recipe);
    const Result<PlannedPolicy> plan = MakePlan(&grid, nullptr, {});
    ASSERT_TRUE(plan.ok());
    const policy::DecisionTable table(plan.value().policy, {.shape = {kHere.nodes, kHere.ranks}});
    for (const uint64_t bytes : recipe.sizes) {
      const auto* const entry = table.Find({kHere.collective, bytes, 1, 0});
      chosen += entry != nullptr && entry->config() == kBest ? 1 : 0;
      ++sizes;
    }
  }
  EXPECT_GE(chosen, sizes * 8 / 10);
}

}  // namespace
}  // namespace diapason::model
