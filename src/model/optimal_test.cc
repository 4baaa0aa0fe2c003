#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "model/choose.h"
#include "model/testing.h"

namespace diapason::model {
namespace {

// The whole way: measure, learn, choose.
class OptimalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WhyNoTrainer().empty()) GTEST_SKIP() << WhyNoTrainer();
  }
  static ModelChoice At(const Predictor& predictor, uint64_t bytes,
                        const ChoiceOptions& options = {}) {
    return FindOptimalConfig(predictor, {kHere, bytes, false, {}}, {options, false});
  }
};

TEST_F(OptimalTest, NoiseAloneIsNoReasonToChangeAnything) {
  for (const double noise : {0.003, 0.05}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      Recipe recipe = Flat([](uint64_t, const Config&) { return 1.0; });
      recipe.noise = noise;
      recipe.seed = seed;
      const Predictor predictor = Learn(MeasureGrid(recipe));
      for (const uint64_t bytes : recipe.sizes) {
        for (const uint64_t asked : {bytes, bytes + bytes / 3}) {
          const ModelChoice choice = At(predictor, asked);
          EXPECT_TRUE(choice.leave_default)
              << noise << ", seed " << seed << ", " << asked << ": " << choice.why;
        }
      }
    }
  }
}

TEST_F(OptimalTest, WhatIsAFifthFasterIsFoundAndTaken) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Recipe recipe = Flat(&BestIsAFifthFaster);
    recipe.noise = 0.01;
    recipe.seed = seed;
    const Predictor predictor = Learn(MeasureGrid(recipe));
    for (const uint64_t bytes : recipe.sizes) {
      const ModelChoice choice = At(predictor, bytes);
      ASSERT_TRUE(choice.best.has_value() && choice.gain.has_value());
      EXPECT_FALSE(choice.leave_default) << choice.why;
      EXPECT_EQ(choice.best->config, kBest);
      EXPECT_EQ(choice.best->basis, Basis::kMeasured);
      EXPECT_TRUE(Has(choice.why, "measured")) << choice.why;
      EXPECT_NEAR(choice.gain->expected, 1.25, 0.05);
      EXPECT_GT(choice.gain->low, 1.1);
      EXPECT_LT(choice.gain->low, choice.gain->expected);
      EXPECT_GT(choice.gain->high, choice.gain->expected);
      ASSERT_TRUE(choice.runner_up.has_value());
      EXPECT_EQ(choice.runner_up->config.algorithm, kTree) << "of another family";
    }
  }
}

TEST_F(OptimalTest, WhatIsAFifthFasterWithAHugeSpreadIsLeft) {
  Recipe recipe = Flat([](uint64_t bytes, const Config& config) {
    return config.IsDefault() ? 1.0 : config == kBest && bytes == 65536 ? 0.8 : 1.1;
  });
  recipe.noise = 0.01;
  dataset::StoreContents contents = Measure(recipe);
  const Predictor sure = Learn(MakeGrid(contents, {}).value());
  EXPECT_EQ(At(sure, 65536).best->config, kBest);
  EXPECT_FALSE(At(sure, 65536).leave_default);
  // The same median, from repeats that are far apart.
  double spread = 0.1;
  for (dataset::StoredSample& record : contents.records) {
    const dataset::Point& point = record.sample.point;
    if (point.bytes != 65536 || point.algorithm != "ring" || point.channels != 16) continue;
    record.sample.seconds *= spread;
    spread = spread < 1 ? 1 : 10;
  }
  const Grid grid = MakeGrid(contents, {}).value();
  const Predictor unsure = Learn(grid);
  const ModelChoice choice = At(unsure, 65536);
  EXPECT_TRUE(choice.leave_default) << choice.why;
  const MeasuredSize& context = grid.scenes[0].contexts[4];
  ASSERT_EQ(context.bytes, 65536u);
  EXPECT_LT(context.Find(kBest)->log_seconds,
            context.cells[*context.library_default].log_seconds - 0.15)
      << "its median is as fast as before";
}

TEST_F(OptimalTest, WithoutTheDefaultTheBestIsChosenAndItIsSaid) {
  Recipe recipe = Flat(&BestIsAFifthFaster);
  recipe.configs.pop_back();
  const Predictor predictor = Learn(MeasureGrid(recipe));
  const ModelChoice choice = At(predictor, 65536);
  ASSERT_TRUE(choice.best.has_value());
  EXPECT_FALSE(choice.leave_default);
  EXPECT_EQ(choice.best->config, kBest);
  EXPECT_FALSE(choice.gain.has_value());
  EXPECT_TRUE(Has(choice.why, "not measured")) << choice.why;
}

TEST_F(OptimalTest, TheCoarseSearchFindsTheSameWhereTimesAreSmooth) {
  Recipe recipe = Flat(&Smooth);
  recipe.configs = WithChannels(kRing, kSimple, {1, 2, 4, 8, 12, 16, 20, 24, 28, 32});
  for (const Config& config : WithChannels(kTree, kLl, {1, 2, 4, 8, 16, 32})) {
    recipe.configs.push_back(config);
  }
  recipe.configs.push_back({});
  const Predictor predictor = Learn(MeasureGrid(recipe));
  std::set<int> channels;
  for (const uint64_t bytes : recipe.sizes) {
    const Predictor::Request request{kHere, bytes, false, {}};
    const ModelChoice all = FindOptimalConfig(predictor, request, {{}, false});
    const ModelChoice some = FindOptimalConfig(predictor, request, {{}, true});
    EXPECT_EQ(all.best->config, some.best->config) << bytes;
    EXPECT_EQ(all.leave_default, some.leave_default);
    EXPECT_EQ(all.examined, 64u);
    EXPECT_LT(some.examined, all.examined / 2);
    channels.insert(all.best->config.channels);
  }
  EXPECT_GT(channels.size(), 2u) << "the best moves with the size, else this shows little";
}

TEST_F(OptimalTest, ToleranceTakesFewerChannels) {
  Recipe recipe = Flat([](uint64_t, const Config& config) {
    if (config.IsDefault()) return 1.5;
    return config.algorithm == kTree ? 1.2 : 1 + 0.02 / config.channels;
  });
  const Predictor predictor = Learn(MeasureGrid(recipe));
  ChoiceOptions options;
  const ModelChoice exact = At(predictor, 65536, options);
  options.tolerance = 0.03;
  const ModelChoice tolerant = At(predictor, 65536, options);
  EXPECT_GE(exact.best->config.channels, 16);
  EXPECT_EQ(tolerant.best->config.channels, 2);
  EXPECT_EQ(FamilyOf(tolerant.best->config), FamilyOf(exact.best->config));
  EXPECT_FALSE(tolerant.leave_default);
}

TEST_F(OptimalTest, NoMeasuredChoiceIsOneThatTheDataCallWorseThanTheDefault) {
  const Grid& grid = RealGrid();
  ASSERT_EQ(grid.scenes.size(), 2u);
  const Predictor predictor = Learn(grid);
  size_t taken = 0;
  size_t measured = 0;
  for (const MeasuredPlace& scene : grid.scenes) {
    for (const MeasuredSize& context : scene.contexts) {
      const ModelChoice choice =
          FindOptimalConfig(predictor, {scene.place, context.bytes, false, {}}, {});
      if (choice.leave_default) continue;
      ++taken;
      const MeasuredConfig* const chosen = context.Find(choice.best->config);
      if (chosen == nullptr) continue;
      ++measured;
      EXPECT_LT(chosen->log_seconds, context.cells[*context.library_default].log_seconds)
          << PlaceText(scene.place) << ", " << context.bytes << ": " << choice.why;
    }
  }
  EXPECT_GT(taken, 8u) << "one node has much to gain below a megabyte";
  EXPECT_GT(measured, taken / 2);
}

}  // namespace
}  // namespace diapason::model
