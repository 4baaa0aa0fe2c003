#include "model/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/testing.h"

namespace diapason::model {
namespace {

constexpr CallPlace kOne{Collective::kAllReduce, 1, 8};
constexpr CallPlace kTwo{Collective::kAllReduce, 2, 16};

// Small sizes want the tree, large ones the ring with many channels; the default is in between.
Recipe Crossing() {
  Recipe recipe;
  recipe.places = {kOne, kTwo};
  recipe.sizes = Doublings(4096, 8);
  recipe.configs = WithChannels(kRing, kSimple, {4, 8, 16});
  for (const Config& config : WithChannels(kTree, kLl, {2, 4, 8})) recipe.configs.push_back(config);
  recipe.configs.push_back({});
  recipe.seconds = [](const CallPlace& place, uint64_t bytes, const Config& config) {
    const auto size = static_cast<double>(bytes);
    if (config.IsDefault()) return 1.5e-5 * place.nodes + size * 1.2e-10;
    const double lane = size / config.channels;
    return config.algorithm == kTree ? 1e-5 * place.nodes + lane * 2e-9
                                     : 2e-5 * place.nodes + lane * 1e-9;
  };
  return recipe;
}

Config Fastest(const MeasuredSize& context) {
  return std::min_element(context.cells.begin(), context.cells.end(),
                          [](const MeasuredConfig& a, const MeasuredConfig& b) {
                            return a.log_seconds < b.log_seconds;
                          })
      ->config;
}

const Score& Of(const Evaluation& evaluation, ChooserKind chooser) {
  for (const Score& score : evaluation.scores) {
    if (score.chooser == chooser) return score;
  }
  ADD_FAILURE() << ChooserName(chooser) << " has no score";
  return evaluation.scores.front();
}

policy::Policy OraclePolicy(const Grid& grid) {
  policy::Policy policy;
  policy.library = grid.library;
  for (const MeasuredPlace& scene : grid.scenes) {
    for (const MeasuredSize& context : scene.contexts) {
      policy::Rule rule;
      rule.collective = scene.place.collective;
      rule.min_bytes = rule.max_bytes = context.bytes;
      rule.nodes = scene.place.nodes;
      rule.ranks = scene.place.ranks;
      rule.config = Fastest(context);
      if (!rule.config.IsDefault()) policy.rules.push_back(rule);
    }
  }
  return policy;
}

class EvaluateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WhyNoTrainer().empty()) GTEST_SKIP() << WhyNoTrainer();
    options_.fit = QuickFit();
    options_.draws = 3;
    options_.known = 0.5;
  }
  Evaluation Run(const Grid& grid, LeaveOut what) {
    options_.leave_out = what;
    Result<Evaluation> result = Evaluate(grid, options_);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(result).value() : Evaluation{};
  }
  EvaluateOptions options_;
};

TEST_F(EvaluateTest, TheOracleIsPerfectAndTheDefaultIsItself) {
  const Grid grid = MeasureGrid(Crossing());
  for (const LeaveOut what :
       {LeaveOut::kSizes, LeaveOut::kNodes, LeaveOut::kConfigs, LeaveOut::kCells}) {
    const Evaluation evaluation = Run(grid, what);
    ASSERT_FALSE(evaluation.scores.empty());
    const ChoiceScore& oracle = Of(evaluation, ChooserKind::kOracle).all;
    EXPECT_DOUBLE_EQ(oracle.Mean(), 1);
    EXPECT_DOUBLE_EQ(oracle.worst, 1);
    EXPECT_GE(oracle.worst_default, 1);
    EXPECT_EQ(oracle.harmed, 0u);
    EXPECT_GT(oracle.improved, 0u);
    const ChoiceScore& library_default = Of(evaluation, ChooserKind::kDefault).all;
    EXPECT_DOUBLE_EQ(library_default.worst_default, 1);
    EXPECT_DOUBLE_EQ(library_default.MeanAgainstDefault(), 1);
    EXPECT_EQ(library_default.improved + library_default.harmed, 0u);
    EXPECT_LT(library_default.Mean(), 0.95) << "there is something to gain";
    for (const Score& score : evaluation.scores) {
      EXPECT_EQ(score.parts.size(), evaluation.parts.size());
      EXPECT_EQ(score.all.contexts, oracle.contexts);
      EXPECT_LE(score.all.Mean(), 1 + 1e-12) << ChooserName(score.chooser);
      size_t contexts = 0;
      for (const ChoiceScore& part : score.parts) contexts += part.contexts;
      EXPECT_EQ(contexts, score.all.contexts);
    }
  }
}

TEST_F(EvaluateTest, OnlyInnerSizesAreAsked) {
  const Evaluation evaluation = Run(MeasureGrid(Crossing()), LeaveOut::kSizes);
  EXPECT_EQ(evaluation.parts.size(), 3u);
  // Of eight sizes six are inside, each asked once, at two places.
  EXPECT_EQ(Of(evaluation, ChooserKind::kOurs).all.contexts, 12u);
  for (const ChoiceScore& part : Of(evaluation, ChooserKind::kOurs).parts)
    EXPECT_EQ(part.contexts, 4u);
  EXPECT_EQ(Of(evaluation, ChooserKind::kInterpolate).all.unanswered, 0u)
      << "between two sizes there is always a line";
  Recipe two = Crossing();
  two.sizes.resize(2);
  options_.leave_out = LeaveOut::kSizes;
  EXPECT_FALSE(Evaluate(MeasureGrid(two), options_).ok());
}

TEST_F(EvaluateTest, WhatWasLeftOutIsNotKnown) {
  // One size where another configuration wins: unpredictable if it is hidden.
  Recipe recipe = Crossing();
  recipe.places = {kOne};
  const auto smooth = recipe.seconds;
  recipe.seconds = [smooth](const CallPlace& place, uint64_t bytes, const Config& config) {
    const bool odd = bytes == 4096 << 3 && config == Config{kRing, kSimple, 4, 0};
    return smooth(place, bytes, config) * (odd ? 0.2 : 1);
  };
  const Evaluation evaluation = Run(MeasureGrid(recipe), LeaveOut::kSizes);
  for (const ChooserKind chooser :
       {ChooserKind::kOurs, ChooserKind::kInterpolate, ChooserKind::kOriginal}) {
    EXPECT_LT(Of(evaluation, chooser).all.worst, 0.5) << ChooserName(chooser);
  }
}

TEST_F(EvaluateTest, OursIsNearTheBestWhereTimesAreSmooth) {
  const Evaluation evaluation = Run(MeasureGrid(Crossing()), LeaveOut::kSizes);
  const ChoiceScore& ours = Of(evaluation, ChooserKind::kOurs).all;
  EXPECT_GT(ours.Mean(), 0.97);
  EXPECT_EQ(ours.harmed, 0u);
  EXPECT_GT(ours.Mean(), Of(evaluation, ChooserKind::kDefault).all.Mean());
}

TEST_F(EvaluateTest, DrawsAreTheSameEveryTime) {
  const Grid grid = MeasureGrid(Crossing());
  for (const LeaveOut what : {LeaveOut::kConfigs, LeaveOut::kCells}) {
    const Evaluation one = Run(grid, what);
    const Evaluation two = Run(grid, what);
    ASSERT_EQ(one.parts.size(), 3u);
    ASSERT_EQ(one.scores.size(), two.scores.size());
    bool differ = false;
    for (size_t i = 0; i < one.scores.size(); ++i) {
      for (size_t k = 0; k < one.parts.size(); ++k) {
        EXPECT_EQ(one.scores[i].parts[k].sum_log, two.scores[i].parts[k].sum_log);
        differ |= one.scores[i].parts[k].sum_log != one.scores[i].parts[0].sum_log;
      }
    }
    EXPECT_TRUE(differ) << "every draw is another";
    // All sizes are asked in every draw.
    EXPECT_EQ(Of(one, ChooserKind::kOurs).all.contexts, 3u * 16u);
  }
}

TEST_F(EvaluateTest, NodesNeedTwoCountsAndAreAskedElsewhere) {
  Recipe recipe = Crossing();
  const Evaluation evaluation = Run(MeasureGrid(recipe), LeaveOut::kNodes);
  ASSERT_EQ(evaluation.parts.size(), 2u);
  EXPECT_EQ(evaluation.parts[0], "without 1 node");
  EXPECT_EQ(evaluation.parts[1], "without 2 nodes");
  // Nothing is known there: no lines, and the model leaves the default.
  EXPECT_EQ(Of(evaluation, ChooserKind::kInterpolate).all.unanswered, 16u);
  EXPECT_DOUBLE_EQ(Of(evaluation, ChooserKind::kOurs).all.worst_default, 1);
  recipe.places = {kOne};
  options_.leave_out = LeaveOut::kNodes;
  const Result<Evaluation> one = Evaluate(MeasureGrid(recipe), options_);
  ASSERT_FALSE(one.ok());
  EXPECT_TRUE(Has(one.status().message(), "node")) << one.status().message();
}

TEST_F(EvaluateTest, ProgressIsToldBeforeEveryPart) {
  std::vector<size_t> told;
  options_.progress = [&](size_t part, size_t of) {
    EXPECT_EQ(of, 3u);
    told.push_back(part);
  };
  Run(MeasureGrid(Crossing()), LeaveOut::kSizes);
  EXPECT_EQ(told, (std::vector<size_t>{0, 1, 2}));
}

TEST(EvaluatePolicy, OneThatIsTheOracleScoresOne) {
  for (const Grid& grid : {MeasureGrid(Crossing()), RealGrid()}) {
    size_t unknown = 99;
    const Result<Evaluation> result = EvaluatePolicy(grid, OraclePolicy(grid), &unknown);
    ASSERT_TRUE(result.ok()) << result.status().message();
    const ChoiceScore& policy = Of(result.value(), ChooserKind::kPolicy).all;
    EXPECT_DOUBLE_EQ(policy.Mean(), 1);
    EXPECT_DOUBLE_EQ(policy.worst, 1);
    EXPECT_GE(policy.worst_default, 1);
    EXPECT_EQ(unknown, 0u);
    EXPECT_DOUBLE_EQ(Of(result.value(), ChooserKind::kOracle).all.Mean(), 1);
    EXPECT_GT(policy.Mean(), Of(result.value(), ChooserKind::kDefault).all.Mean());
  }
}

TEST(EvaluatePolicy, AnEmptyOneIsTheDefaultAndABadOneHarms) {
  const Grid grid = MeasureGrid(Crossing());
  policy::Policy policy;
  policy.library = grid.library;
  size_t unknown = 99;
  const Evaluation nothing = EvaluatePolicy(grid, policy, &unknown).value();
  EXPECT_EQ(unknown, 0u);
  EXPECT_EQ(Of(nothing, ChooserKind::kPolicy).all.sum_log,
            Of(nothing, ChooserKind::kDefault).all.sum_log);
  policy::Rule rule;
  rule.max_bytes = UINT64_MAX;
  rule.config = {kTree, kLl, 2, 0};
  policy.rules = {rule};
  const Evaluation bad = EvaluatePolicy(grid, policy, &unknown).value();
  EXPECT_EQ(unknown, 0u);
  EXPECT_GT(Of(bad, ChooserKind::kPolicy).all.harmed, 0u);
  EXPECT_LT(Of(bad, ChooserKind::kPolicy).all.worst_default, 0.9);
  // Configurations without data count as the default, and are counted.
  policy.rules[0].config.channels = 63;
  const Evaluation unseen = EvaluatePolicy(grid, policy, &unknown).value();
  EXPECT_EQ(unknown, 16u);
  EXPECT_DOUBLE_EQ(Of(unseen, ChooserKind::kPolicy).all.worst_default, 1);
}

TEST(EvaluatePolicy, OneForAnotherLibraryIsAnError) {
  const Grid grid = MeasureGrid(Crossing());
  policy::Policy policy;
  policy.library = Library::kNccl;
  size_t unknown = 0;
  const Result<Evaluation> result = EvaluatePolicy(grid, policy, &unknown);
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(Has(result.status().message(), "NCCL")) << result.status().message();
  EXPECT_TRUE(Has(result.status().message(), "RCCL")) << result.status().message();
}

MeasuredSize Small(double coarse) {
  MeasuredSize context;
  context.bytes = 1024;
  context.cells = {{{}, std::log(1.0), 0.01, coarse, 3},
                   {{kTree, kLl, 2, 0}, std::log(0.5), 0.01, coarse, 3},
                   {{kRing, kLl, 2, 0}, std::log(1.04), 0.01, coarse, 3}};
  context.library_default = 0;
  return context;
}

TEST(ChoiceScore, CountsGainsAndHarmBeyondTheDigits) {
  ChoiceScore tally;
  Record(kOne, Small(0), {kTree, kLl, 2, 0}, &tally);
  EXPECT_DOUBLE_EQ(tally.Mean(), 1);
  EXPECT_NEAR(tally.MeanAgainstDefault(), 2, 1e-9);
  EXPECT_NEAR(tally.worst_default, 2, 1e-9);
  EXPECT_EQ(tally.improved, 1u);
  Record(kOne, Small(0), {kRing, kLl, 2, 0}, &tally);
  EXPECT_EQ(tally.harmed, 1u);
  EXPECT_NEAR(tally.worst, 0.5 / 1.04, 1e-9);
  EXPECT_NEAR(tally.worst_default, 1 / 1.04, 1e-9);
  EXPECT_TRUE(Has(tally.worst_at, "8 ranks")) << tally.worst_at;
  EXPECT_EQ(tally.contexts, 2u);
  // Four hundredths slower is no harm where the digits are as coarse.
  ChoiceScore coarse;
  Record(kOne, Small(0.03), {kRing, kLl, 2, 0}, &coarse);
  EXPECT_EQ(coarse.harmed, 0u);
  EXPECT_DOUBLE_EQ(coarse.worst_default, 1);
}

TEST(ChoiceScore, WhatWasNotMeasuredIsTheDefaultOrTheWorst) {
  ChoiceScore tally;
  Record(kOne, Small(0), {kRing, kSimple, 64, 0}, &tally);
  EXPECT_NEAR(tally.Mean(), 0.5, 1e-9);
  EXPECT_EQ(tally.with_default, 1u);
  MeasuredSize without = Small(0);
  without.cells.erase(without.cells.begin());
  without.library_default.reset();
  ChoiceScore worst;
  Record(kOne, without, {}, &worst);
  EXPECT_NEAR(worst.Mean(), 0.5 / 1.04, 1e-9);
  EXPECT_EQ(worst.with_default, 0u);
}

TEST(ChoiceScore, AddIsAsIfRecordedTogether) {
  ChoiceScore together;
  ChoiceScore parts[2];
  const Config configs[] = {{kTree, kLl, 2, 0}, {kRing, kLl, 2, 0}};
  for (int i = 0; i < 2; ++i) {
    Record(kOne, Small(0), configs[i], &together);
    Record(kOne, Small(0), configs[i], &parts[i]);
  }
  ChoiceScore sum;
  for (const ChoiceScore& part : parts) sum.Add(part);
  EXPECT_EQ(sum.contexts, together.contexts);
  EXPECT_EQ(sum.with_default, together.with_default);
  EXPECT_EQ(sum.improved, together.improved);
  EXPECT_EQ(sum.harmed, together.harmed);
  EXPECT_DOUBLE_EQ(sum.sum_log, together.sum_log);
  EXPECT_DOUBLE_EQ(sum.sum_log_default, together.sum_log_default);
  EXPECT_DOUBLE_EQ(sum.worst, together.worst);
  EXPECT_DOUBLE_EQ(sum.worst_default, together.worst_default);
  EXPECT_EQ(sum.worst_at, together.worst_at);
  EXPECT_EQ(sum.worst_default_at, together.worst_default_at);
  EXPECT_EQ(ChoiceScore{}.Mean(), 1);
}

TEST(Interpolate, StraightLinesWithinWhatWasMeasured) {
  const Grid grid = MeasureGrid(Crossing());
  const MeasuredPlace& scene = grid.scenes[0];
  const Config ring{kRing, kSimple, 8, 0};
  const double low = scene.contexts[1].Find(ring)->log_seconds;
  const double high = scene.contexts[2].Find(ring)->log_seconds;
  EXPECT_DOUBLE_EQ(Interpolate(scene, 8192, ring)->log_seconds, low);
  const auto middle = static_cast<uint64_t>(8192 * std::sqrt(2.0));
  EXPECT_NEAR(Interpolate(scene, middle, ring)->log_seconds, (low + high) / 2, 1e-4);
  EXPECT_FALSE(Interpolate(scene, 4095, ring).has_value());
  EXPECT_FALSE(Interpolate(scene, (4096 << 7) + 1, ring).has_value());
  EXPECT_FALSE(Interpolate(scene, 8192, {kRing, kSimple, 9, 0}).has_value());
}

TEST(LeaveOut, Names) {
  EXPECT_EQ(ParseLeaveOut("sizes").value(), LeaveOut::kSizes);
  EXPECT_EQ(ParseLeaveOut("nodes").value(), LeaveOut::kNodes);
  EXPECT_EQ(ParseLeaveOut("configs").value(), LeaveOut::kConfigs);
  EXPECT_EQ(ParseLeaveOut("cells").value(), LeaveOut::kCells);
  const Result<LeaveOut> unknown = ParseLeaveOut("size");
  ASSERT_FALSE(unknown.ok());
  EXPECT_TRUE(Has(unknown.status().message(), "sizes")) << unknown.status().message();
}

}  // namespace
}  // namespace diapason::model
