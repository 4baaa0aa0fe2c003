#include "model/plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/evidence.h"
#include "model/testing.h"
#include "policy/parse.h"
#include "policy/table.h"

namespace diapason::model {
namespace {

const policy::DecisionTable::Entry* Ask(const PlannedPolicy& plan, const CallPlace& place,
                                        uint64_t bytes) {
  policy::DecisionTable::Options options;
  options.shape = {place.nodes, place.ranks};
  static std::vector<std::unique_ptr<policy::DecisionTable>> kept;
  kept.push_back(std::make_unique<policy::DecisionTable>(plan.policy, options));
  return kept.back()->Find({place.collective, bytes, 1, 0});
}

PlannedPolicy Make(const Grid& grid, const PlanOptions& options = {}) {
  Result<PlannedPolicy> plan = MakePlan(&grid, nullptr, options);
  EXPECT_TRUE(plan.ok());
  return std::move(plan).value();
}

TEST(PlannedPolicy, OneConfigurationThatIsFasterEverywhereIsOneRow) {
  Recipe recipe = Flat(BestIsAFifthFaster);
  recipe.noise = 0.003;
  const PlannedPolicy plan = Make(MeasureGrid(recipe));
  ASSERT_EQ(plan.rows.size(), 1U);
  const PlannedRow& row = plan.rows[0];
  EXPECT_EQ(row.rule.config, kBest);
  EXPECT_EQ(row.rule.min_bytes, recipe.sizes.front());
  EXPECT_EQ(row.rule.max_bytes, recipe.sizes.back());
  EXPECT_EQ(row.rule.nodes, 1);
  EXPECT_EQ(row.rule.ranks, 8);
  EXPECT_NEAR(row.gain, 1.25, 0.02);
  EXPECT_EQ(row.samples, 3 * recipe.sizes.size());
  EXPECT_TRUE(plan.left.empty());
  // Unmeasured sizes get no row.
  EXPECT_EQ(Ask(plan, kHere, recipe.sizes.back() + 1), nullptr);
  EXPECT_EQ(Ask(plan, {Collective::kAllReduce, 2, 16}, recipe.sizes.front()), nullptr);
  EXPECT_EQ(Ask(plan, {Collective::kAllGather, 1, 8}, recipe.sizes.front()), nullptr);
}

TEST(PlannedPolicy, RowsReachNoFurtherThanTheyMay) {
  Recipe recipe = Flat(BestIsAFifthFaster);
  recipe.noise = 0.003;
  recipe.sizes = {1 << 10, 1 << 12, 1 << 20, 1 << 26};
  PlanOptions options;
  options.chosen = [](const CallPlace&, uint64_t bytes) {
    return bytes < (1 << 26) ? kBest : Config();
  };
  EXPECT_EQ(Make(MeasureGrid(recipe), options).rows.size(), 1U);
  options.reach = 2;
  const PlannedPolicy plan = Make(MeasureGrid(recipe), options);
  // 1 KiB and 4 KiB reach each other; 1 MiB is alone.
  ASSERT_EQ(plan.rows.size(), 2U) << plan.Text();
  EXPECT_EQ(plan.rows[0].rule.min_bytes, 1U << 10U);
  EXPECT_EQ(plan.rows[0].rule.max_bytes, (1U << 13U) - 1);
  EXPECT_EQ(plan.rows[1].rule.min_bytes, (1U << 19U) + 1);
  EXPECT_EQ(plan.rows[1].rule.max_bytes, (1U << 21U) - 1);
  EXPECT_EQ(Ask(plan, kHere, 1 << 15), nullptr);
}

TEST(PlannedPolicy, OneSizeAloneReachesItsEdge) {
  Recipe recipe = Flat(BestIsAFifthFaster);
  recipe.sizes = {1 << 20};
  PlanOptions options;
  options.chosen = [](const CallPlace&, uint64_t) { return kBest; };
  options.reach = 2;
  EXPECT_EQ(Make(MeasureGrid(recipe), options).rows[0].rule.max_bytes, 1U << 20U);
  options.edge = 1.5;
  const PlannedPolicy plan = Make(MeasureGrid(recipe), options);
  ASSERT_EQ(plan.rows.size(), 1U);
  EXPECT_EQ(plan.rows[0].rule.min_bytes, 699050U);
  EXPECT_EQ(plan.rows[0].rule.max_bytes, 3U << 19U);
}

// One size at which something is faster, among others a factor of 4 away where it is slower: the
// row does not reach to where the interpolated gain is gone.
TEST(PlannedPolicy, ARowEndsWhereItsGainIsNoLongerSupported) {
  constexpr uint64_t kFast = 16 << 20;
  Recipe recipe = Flat([](uint64_t bytes, const Config& config) {
    if (config.IsDefault()) return 1.0;
    return bytes == kFast && config == kBest ? 0.8 : 1.3;
  });
  recipe.noise = 0.003;
  recipe.sizes = {1 << 16, 1 << 18, 1 << 20, 4 << 20, kFast, 64 << 20, 256 << 20};
  const PlannedPolicy plan = Make(MeasureGrid(recipe));
  ASSERT_EQ(plan.rows.size(), 1U) << plan.Text();
  const policy::Rule& rule = plan.rows[0].rule;
  EXPECT_LE(rule.min_bytes, kFast);
  EXPECT_GE(rule.max_bytes, kFast);
  EXPECT_GT(rule.min_bytes, 8U << 20U);
  EXPECT_LT(rule.max_bytes, 32U << 20U);
}

TEST(PlannedPolicy, SaysWhatWasMeasuredAndWhatIsInterpolated) {
  Recipe recipe = Flat(BestIsAFifthFaster);
  recipe.noise = 0.003;
  recipe.sizes = {1 << 16, 1 << 18, 1 << 20, 1 << 22};
  const PlannedPolicy plan = Make(MeasureGrid(recipe));
  ASSERT_EQ(plan.rows.size(), 1U) << plan.Text();
  const PlannedRow& row = plan.rows[0];
  EXPECT_EQ(row.sizes, 4U);
  ASSERT_TRUE(row.between.has_value());
  // Less is known there than at the sizes themselves.
  EXPECT_LT(row.between->low, row.least.low);
  EXPECT_TRUE(Has(row.Remark(), "between these sizes")) << row.Remark();
  EXPECT_TRUE(Has(row.Remark(), "4 measured sizes")) << row.Remark();
}

TEST(PlannedPolicy, NoRowIsMoreThanAFactorOfTwoFromAMeasurement) {
  Recipe recipe = Flat(BestIsAFifthFaster);
  recipe.noise = 0.003;
  recipe.sizes = {1 << 16, 1 << 18, 1 << 22, 1 << 24};
  const PlannedPolicy plan = Make(MeasureGrid(recipe));
  EXPECT_NE(Ask(plan, kHere, 1 << 17), nullptr);
  EXPECT_NE(Ask(plan, kHere, 1 << 18), nullptr);
  EXPECT_EQ(Ask(plan, kHere, 1 << 20), nullptr) << "a factor of 4 from both";
  EXPECT_NE(Ask(plan, kHere, 1 << 23), nullptr);
}

TEST(PlannedPolicy, OneSampleClaimsNothing) {
  Recipe recipe = Flat(BestIsAFifthFaster);
  recipe.repeats = 1;
  EXPECT_TRUE(Make(MeasureGrid(recipe)).rows.empty());
  recipe.repeats = 2;
  EXPECT_FALSE(Make(MeasureGrid(recipe)).rows.empty());
}

// Real differences, but only for the worse.
TEST(PlannedPolicy, WhereNothingIsFasterThereIsNoRow) {
  Recipe recipe = Flat([](uint64_t bytes, const Config& config) {
    if (config.IsDefault() || config.channels % 16 == 0) return 1.0;
    return 1 + 0.01 * static_cast<double>((bytes / 4096 + config.channels) % 20);
  });
  size_t with_rows = 0;
  for (recipe.seed = 1; recipe.seed <= 30; ++recipe.seed) {
    recipe.noise = 0.02;
    with_rows += Make(MeasureGrid(recipe)).rows.empty() ? 0 : 1;
  }
  EXPECT_LE(with_rows, 2U);
}

// On another day everything takes as long as 0.7 or 1.4 times before.
TEST(PlannedPolicy, AnotherDayChangesNothing) {
  Recipe recipe = Flat(BestIsAFifthFaster);
  recipe.noise = 0.003;
  const dataset::StoreContents first = Measure(recipe);
  const PlannedPolicy alone = Make(MakeGrid(first, {}).value());
  ASSERT_EQ(alone.rows.size(), 1U);
  for (const double factor : {0.7, 1 / 0.7}) {
    for (const bool with_default : {true, false}) {
      dataset::StoreContents both = first;
      both.runs.push_back(first.runs[0]);
      both.runs[1].id = "another day";
      for (const dataset::StoredSample& record : first.records) {
        if (!with_default && record.sample.point.IsDefault()) continue;
        both.records.push_back({1, record.sample});
        both.records.back().sample.seconds *= factor;
      }
      const Grid grid = MakeGrid(both, {}).value();
      const PlannedPolicy plan = Make(grid);
      ASSERT_EQ(plan.rows.size(), 1U) << plan.Text();
      EXPECT_EQ(plan.rows[0].rule.config, kBest);
      EXPECT_NEAR(plan.rows[0].gain, alone.rows[0].gain, 0.01);
      EXPECT_EQ(AnyHas(grid.messages, "not measured in the same run"), !with_default);
    }
  }
}

TEST(PlannedPolicy, ManySizesTogetherProveWhatNoneDoesAlone) {
  // Two samples a size, with so much noise that they prove little.
  Recipe recipe = Flat([](uint64_t, const Config& config) {
    return config == kBest ? 0.5 : config.IsDefault() ? 1.0 : 1.2;
  });
  recipe.repeats = 2;
  recipe.noise = 0.3;
  const Grid grid = MeasureGrid(recipe);
  const Evidence evidence(grid, 0.002);
  EXPECT_EQ(evidence.sizes(), 0u);
  EXPECT_TRUE(evidence.FamilyProven(kHere, FamilyOf(kBest)));
  // At few of the sizes that is luck.
  Grid few = grid;
  few.scenes[0].contexts.resize(2);
  EXPECT_FALSE(Evidence(few, 0.002).FamilyProven(kHere, FamilyOf(kBest)));
}

TEST(PlannedPolicy, NoiseAloneIsLeftToTheLibrary) {
  Recipe recipe = Flat([](uint64_t, const Config&) { return 1.0; });
  for (const double noise : {0.002, 0.02, 0.1}) {
    for (recipe.seed = 1; recipe.seed <= 8; ++recipe.seed) {
      recipe.noise = noise;
      const PlannedPolicy plan = Make(MeasureGrid(recipe));
      EXPECT_TRUE(plan.rows.empty()) << noise << ", seed " << recipe.seed << "\n" << plan.Text();
      ASSERT_FALSE(plan.left.empty());
      EXPECT_FALSE(plan.left[0].why.empty());
    }
  }
}

TEST(PlannedPolicy, GainsBelowTheMarginAreLeft) {
  Recipe recipe = Flat([](uint64_t, const Config& config) {
    if (config.IsDefault()) return 1.0;
    return config == kBest ? 0.97 : 1.2;
  });
  recipe.noise = 0.0005;
  EXPECT_EQ(Make(MeasureGrid(recipe)).rows.size(), 1U);
  PlanOptions options;
  options.choice.margin = 0.05;
  EXPECT_TRUE(Make(MeasureGrid(recipe), options).rows.empty());
}

TEST(PlannedPolicy, ChangesWhereTheTwoAreEquallyFast) {
  const Config small{kTree, kLl, 8, 0};
  const Config large{kRing, kSimple, 16, 0};
  // Equal at four times the fourth root of two beyond 32 KiB.
  const double equal = std::log2(32768) + 2.25;
  Recipe recipe = Flat([&](uint64_t bytes, const Config& config) {
    const double off = 0.1 * (std::log2(static_cast<double>(bytes)) - equal);
    if (config == small) return 0.5 * std::exp(off);
    if (config == large) return 0.5 * std::exp(-off);
    return config.IsDefault() ? 1.0 : 1.5;
  });
  recipe.sizes = Doublings(4096, 10);
  PlanOptions options;
  options.choice.tolerance = 0;
  const PlannedPolicy plan = Make(MeasureGrid(recipe), options);
  ASSERT_EQ(plan.rows.size(), 2U) << plan.Text();
  EXPECT_EQ(plan.rows[0].rule.config, small);
  EXPECT_EQ(plan.rows[1].rule.config, large);
  EXPECT_EQ(plan.rows[0].rule.max_bytes + 1, plan.rows[1].rule.min_bytes);
  EXPECT_NEAR(std::log2(static_cast<double>(plan.rows[1].rule.min_bytes)), equal, 0.1);
}

TEST(PlannedPolicy, TakesFewerChannelsAndRowsWithinTheTolerance) {
  // A percent apart, another one at every size; 8 channels are never the best.
  Recipe recipe = Flat([](uint64_t bytes, const Config& config) {
    if (config.IsDefault()) return 1.0;
    if (config.algorithm != kRing) return 1.5;
    if (config.channels == 2) return 1.1;
    const int lucky = std::lround(std::log2(static_cast<double>(bytes))) % 2 == 0 ? 16 : 32;
    return config.channels == lucky ? 0.8 : 0.808;
  });
  PlanOptions options;
  const PlannedPolicy merged = Make(MeasureGrid(recipe), options);
  ASSERT_EQ(merged.rows.size(), 1U) << merged.Text();
  EXPECT_EQ(merged.rows[0].rule.config, (Config{kRing, kSimple, 8, 0}));
  options.choice.tolerance = 0;
  EXPECT_GT(Make(MeasureGrid(recipe), options).rows.size(), 5U);
}

TEST(PlannedPolicy, ArmsAreThereToBeTriedAndDecideNothing) {
  PlanOptions options;
  const PlannedPolicy without = Make(RealGrid(), options);
  options.arms = 3;
  const PlannedPolicy with = Make(RealGrid(), options);
  ASSERT_GT(with.policy.rules.size(), without.policy.rules.size());
  const auto read = policy::ParseStrictly(with.Text(), "plan", {.library = with.policy.library});
  ASSERT_TRUE(read.ok()) << read.status().message();
  for (const auto& [nodes, ranks] : {std::pair{1, 8}, std::pair{2, 16}}) {
    const policy::DecisionTable one(without.policy, {.shape = {nodes, ranks}});
    const policy::DecisionTable other(read.value(), {.shape = {nodes, ranks}});
    size_t matching = 0;
    for (uint64_t bytes = 1; bytes < (uint64_t{1} << 34); bytes = bytes * 9 / 8 + 1) {
      const auto* before = one.Find({Collective::kAllReduce, bytes, 1, 0});
      const auto* after = other.Find({Collective::kAllReduce, bytes, 1, 0});
      const Config was = before == nullptr ? Config() : before->config();
      EXPECT_EQ(after == nullptr ? Config() : after->config(), was) << bytes;
      for (const policy::Rule& rule : read.value().rules) {
        matching += rule.min_bytes <= bytes && bytes <= rule.max_bytes &&
                            rule.MatchesShape({nodes, ranks}) && !rule.config.IsDefault()
                        ? 1
                        : 0;
      }
    }
    EXPECT_GT(matching, 100u);
  }
}

TEST(PlannedPolicy, NothingIsPlannedWithoutTheDefault) {
  Recipe recipe = Flat(BestIsAFifthFaster);
  std::erase_if(recipe.configs, [](const Config& config) { return config.IsDefault(); });
  const PlannedPolicy plan = Make(MeasureGrid(recipe));
  EXPECT_TRUE(plan.rows.empty());
  EXPECT_TRUE(AnyHas(plan.messages, "own choice was not measured"));
}

TEST(PlannedPolicy, TextIsAPolicyWithARemarkBeforeEveryRow) {
  PlanOptions options;
  options.origin = "a test";
  const PlannedPolicy plan = Make(RealGrid(), options);
  ASSERT_FALSE(plan.rows.empty());
  const std::string text = plan.Text();
  const Result<policy::Policy> read = policy::ParseStrictly(text, "plan", {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(policy::Digest(read.value()), policy::Digest(plan.policy));
  EXPECT_EQ(read.value().header.origin, "a test");
  size_t remarks = 0;
  for (size_t at = text.find(" x faster "); at != std::string::npos;
       at = text.find(" x faster ", at + 1)) {
    ++remarks;
  }
  EXPECT_EQ(remarks, plan.rows.size());
}

// Holds on real and on noisy measurements, strict and eager: a plan never chooses a configuration
// that the data show to be slower than the library's own choice.
TEST(PlannedPolicy, NeverChoosesWhatTheDataCallSlower) {
  std::vector<Grid> grids = {RealGrid()};
  Recipe recipe = Flat(Smooth);
  for (recipe.seed = 1; recipe.seed <= 6; ++recipe.seed) {
    recipe.noise = 0.05 * static_cast<double>(recipe.seed);
    grids.push_back(MeasureGrid(recipe));
  }
  for (const Grid& grid : grids) {
    for (const double confidence : {0.5, 0.9, 0.99}) {
      PlanOptions options;
      options.choice.confidence = confidence;
      options.choice.margin = confidence < 0.9 ? 0 : 0.02;
      const PlannedPolicy plan = Make(grid, options);
      for (const MeasuredPlace& scene : grid.scenes) {
        for (const MeasuredSize& context : scene.contexts) {
          const auto* const entry = Ask(plan, scene.place, context.bytes);
          if (entry == nullptr) continue;
          const MeasuredConfig* const cell = context.Find(entry->config());
          ASSERT_NE(cell, nullptr) << "not measured at " << context.bytes;
          EXPECT_LT(cell->log_seconds + std::log1p(options.choice.margin),
                    context.cells[*context.library_default].log_seconds)
              << PlaceText(scene.place) << " at " << context.bytes;
        }
      }
    }
  }
}

TEST(PlannedPolicy, AModelSpeaksAboutWhatWasNotMeasured) {
  if (const std::string reason = WhyNoTrainer(); !reason.empty()) GTEST_SKIP() << reason;
  Recipe recipe = Flat(BestIsAFifthFaster);
  recipe.noise = 0.003;
  const Grid all = MeasureGrid(recipe);
  const Predictor predictor = Learn(all);
  // Alone it plans what the data plan.
  const Result<PlannedPolicy> alone = MakePlan(nullptr, &predictor, {});
  ASSERT_TRUE(alone.ok());
  ASSERT_EQ(alone.value().rows.size(), 1U);
  EXPECT_EQ(alone.value().rows[0].rule.config, kBest);
  // With data of one size only, that size is planned from them.
  Grid one = all;
  one.scenes[0].contexts.resize(1);
  const Result<PlannedPolicy> both = MakePlan(&one, &predictor, {});
  ASSERT_TRUE(both.ok());
  ASSERT_EQ(both.value().rows.size(), 1U);
  EXPECT_EQ(both.value().rows[0].rule.max_bytes, recipe.sizes.front());
}

TEST(PlannedPolicy, RefusesWhatDoesNotFit) {
  EXPECT_FALSE(MakePlan(nullptr, nullptr, {}).ok());
  if (const std::string reason = WhyNoTrainer(); !reason.empty()) GTEST_SKIP() << reason;
  FitOptions fit = QuickFit();
  fit.objective = Objective::kBusBandwidth;
  const Predictor original = Learn(RealGrid(), fit);
  const Result<PlannedPolicy> plan = MakePlan(nullptr, &original, {});
  ASSERT_FALSE(plan.ok());
  EXPECT_TRUE(Has(plan.status().message(), "busbw"));
  Recipe recipe = Flat(BestIsAFifthFaster);
  recipe.library = Library::kNccl;
  const Grid other = MeasureGrid(recipe);
  const Predictor ours = Learn(RealGrid());
  EXPECT_FALSE(MakePlan(&other, &ours, {}).ok());
}

}  // namespace
}  // namespace diapason::model
