#include "model/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/choose.h"
#include "model/testing.h"

namespace diapason::model {
namespace {

class PredictorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WhyNoTrainer().empty()) GTEST_SKIP() << WhyNoTrainer();
  }
  static ModelChoice At(const Predictor& predictor, uint64_t bytes,
                        const ChoiceOptions& options = {}) {
    return FindOptimalConfig(predictor, {kHere, bytes, false, {}}, {options, false});
  }
};

TEST_F(PredictorTest, SizesFarOutsideAreExtrapolatedWithACaveat) {
  const Recipe recipe = Flat(&BestIsAFifthFaster);
  const Predictor predictor = Learn(MeasureGrid(recipe));
  const uint64_t first = recipe.sizes.front();
  const uint64_t last = recipe.sizes.back();
  const auto look = [&](uint64_t bytes) { return predictor.Look({kHere, bytes, false, {}}); };
  for (const uint64_t near :
       {first, last, first - first / 3, last + last / 2, (first + last) / 2}) {
    EXPECT_TRUE(look(near).caveats.empty()) << near;
  }
  for (const uint64_t far : {uint64_t{1}, first / 4, last * 4, UINT64_MAX}) {
    const Prediction prediction = look(far);
    ASSERT_EQ(prediction.caveats.size(), 1u) << far;
    EXPECT_TRUE(Has(prediction.caveats[0], far < first ? "below" : "above"))
        << prediction.caveats[0];
    ASSERT_FALSE(prediction.candidates.empty());
    for (const PredictedConfig& one : prediction.candidates) {
      EXPECT_EQ(one.basis, Basis::kExtrapolated);
      EXPECT_TRUE(std::isfinite(one.estimate.log_seconds));
    }
    EXPECT_GT(prediction.bend, look(far < first ? first : last).bend - 1e-12);
  }
  // Small ones take as long as the smallest, large ones go at the pace of the largest.
  EXPECT_NEAR(look(1).library_default->log_seconds, look(first).library_default->log_seconds, 1e-6);
  EXPECT_NEAR(look(last * 16).library_default->log_seconds,
              look(last).library_default->log_seconds + std::log(16), 1e-6);
}

TEST_F(PredictorTest, BetweenTwoSizesItIsInterpolated) {
  const Recipe recipe = Flat(&BestIsAFifthFaster);
  const Predictor predictor = Learn(MeasureGrid(recipe));
  const ModelChoice choice = At(predictor, 65536 + 30000);
  EXPECT_FALSE(choice.leave_default) << choice.why;
  EXPECT_EQ(choice.best->config, kBest);
  EXPECT_EQ(choice.best->basis, Basis::kInterpolated);
  const Prediction low = predictor.Look({kHere, 65536, false, {}});
  const Prediction between = predictor.Look({kHere, 65536 + 30000, false, {}});
  const Prediction high = predictor.Look({kHere, 131072, false, {}});
  EXPECT_GT(between.library_default->log_seconds, low.library_default->log_seconds);
  EXPECT_LT(between.library_default->log_seconds, high.library_default->log_seconds);
  EXPECT_EQ(low.bend, 0);
}

TEST_F(PredictorTest, AnUnseenPlaceIsTransferredAndLeftAlone) {
  Recipe recipe = Flat(&BestIsAFifthFaster);
  recipe.places = {{Collective::kAllReduce, 1, 8}, {Collective::kAllReduce, 2, 16}};
  const Predictor predictor = Learn(MeasureGrid(recipe));
  const CallPlace unseen{Collective::kAllReduce, 4, 32};
  const Predictor::Request request{unseen, 65536, false, {}};
  const Prediction prediction = predictor.Look(request);
  ASSERT_EQ(prediction.caveats.size(), 1u);
  EXPECT_TRUE(Has(prediction.caveats[0], PlaceText(unseen))) << prediction.caveats[0];
  EXPECT_TRUE(Has(prediction.caveats[0], PlaceText(recipe.places[1]))) << prediction.caveats[0];
  ASSERT_FALSE(prediction.candidates.empty());
  for (const PredictedConfig& one : prediction.candidates)
    EXPECT_EQ(one.basis, Basis::kTransferred);
  const ModelChoice choice = FindOptimalConfig(predictor, request, {});
  EXPECT_TRUE(choice.leave_default);
  EXPECT_TRUE(Has(choice.why, "other places")) << choice.why;
  ASSERT_TRUE(choice.best.has_value());
  EXPECT_EQ(std::string(BasisName(choice.best->basis)), "transferred");
  // The best candidate is reported nevertheless.
  EXPECT_EQ(choice.best->config.algorithm, kRing);
}

TEST_F(PredictorTest, GainsThatAreTheSameOnSeveralNumbersOfNodesAreTransferred) {
  Recipe recipe = Flat(&BestIsAFifthFaster);
  recipe.places = {{Collective::kAllReduce, 1, 8},
                   {Collective::kAllReduce, 2, 16},
                   {Collective::kAllReduce, 4, 32},
                   {Collective::kAllReduce, 16, 128}};
  const Predictor predictor = Learn(MeasureGrid(recipe));
  const auto choose = [&](int nodes, int ranks) {
    const Predictor::Request request{{Collective::kAllReduce, nodes, ranks}, 65536, false, {}};
    return FindOptimalConfig(predictor, request, {});
  };
  for (const int nodes : {8, 32}) {
    const ModelChoice choice = choose(nodes, 8 * nodes);
    EXPECT_FALSE(choice.leave_default) << nodes << ": " << choice.why;
    ASSERT_TRUE(choice.best.has_value());
    EXPECT_EQ(choice.best->config, kBest);
    EXPECT_EQ(choice.best->basis, Basis::kTransferred);
  }
  // Further away, with other ranks on a node, of another collective: nothing is known.
  EXPECT_TRUE(choose(128, 1024).leave_default);
  EXPECT_TRUE(choose(8, 32).leave_default);
  EXPECT_FALSE(
      std::isfinite(predictor.Look({{Collective::kAllGather, 8, 64}, 65536, false, {}}).shared));
}

TEST_F(PredictorTest, ADefaultThatWasMeasuredNowhereIsUnknownElsewhereToo) {
  Recipe recipe = Flat(&BestIsAFifthFaster);
  recipe.configs.pop_back();
  recipe.places = {{Collective::kAllReduce, 1, 8}, {Collective::kAllReduce, 2, 16}};
  const Predictor::Request request{{Collective::kAllReduce, 8, 64}, 65536, false, {}};
  const Predictor two = Learn(MeasureGrid(recipe));
  EXPECT_FALSE(two.Look(request).library_default.has_value());
  EXPECT_TRUE(FindOptimalConfig(two, request, {}).leave_default) << "the transfer error is unknown";
  recipe.places.push_back({Collective::kAllReduce, 4, 32});
  const Predictor three = Learn(MeasureGrid(recipe));
  EXPECT_FALSE(three.Look(request).library_default.has_value());
  EXPECT_FALSE(FindOptimalConfig(three, request, {}).gain.has_value());
}

TEST_F(PredictorTest, CandidatesStayWithinTheMeasuredChannels) {
  const Predictor predictor = Learn(MeasureGrid(Flat(&Smooth)));
  const auto ranges = [&](bool beyond, const std::vector<ConfigFamily>& families) {
    std::map<ConfigFamily, std::pair<int, int>> found;
    for (const PredictedConfig& one : predictor.Look({kHere, 65536, beyond, families}).candidates) {
      const int channels = one.config.channels;
      auto& range = found.try_emplace(FamilyOf(one.config), channels, channels).first->second;
      range = {std::min(range.first, channels), std::max(range.second, channels)};
    }
    return found;
  };
  const ConfigFamily ring{kRing, kSimple, 0, true};
  const ConfigFamily tree{kTree, kLl, 0, true};
  using Ranges = std::map<ConfigFamily, std::pair<int, int>>;
  EXPECT_EQ(ranges(false, {}), (Ranges{{ring, {2, 32}}, {tree, {4, 24}}}));
  EXPECT_EQ(ranges(true, {}), (Ranges{{ring, {1, 127}}, {tree, {1, 127}}}));
  EXPECT_EQ(ranges(false, {tree}), (Ranges{{tree, {4, 24}}}));
  // Measured configurations, and only those, are marked as measured.
  size_t measured = 0;
  for (const PredictedConfig& one : predictor.Look({kHere, 65536, true, {}}).candidates) {
    measured += one.basis == Basis::kMeasured ? 1 : 0;
    EXPECT_TRUE(one.basis == Basis::kMeasured || one.basis == Basis::kPredicted);
  }
  EXPECT_EQ(measured, SomeConfigs().size() - 1);
}

TEST_F(PredictorTest, WhatWasNotMeasuredIsPredictedNearWhatItIs) {
  const Recipe recipe = Flat(&Smooth);
  const Predictor predictor = Learn(MeasureGrid(recipe));
  for (const uint64_t bytes : recipe.sizes) {
    for (const PredictedConfig& one : predictor.Look({kHere, bytes, false, {}}).candidates) {
      if (one.basis != Basis::kPredicted) continue;
      const double truth = std::log(recipe.seconds(kHere, bytes, one.config));
      EXPECT_NEAR(one.estimate.log_seconds, truth, 0.1)
          << bytes << ", " << one.config.channels << " channels";
      EXPECT_LT(std::fabs(one.estimate.log_seconds - truth), 3 * one.estimate.doubt + 0.01);
    }
  }
}

TEST_F(PredictorTest, FamiliesThatWereNotMeasuredAreOnlyThereWhenAskedFor) {
  FitOptions options = QuickFit();
  const ConfigFamily unseen{kTree, kSimple, 0, true};
  options.families = {unseen};
  const Predictor predictor = Learn(MeasureGrid(Flat(&Smooth)), options);
  const auto of_unseen = [&](const Predictor::Request& request) {
    const Prediction prediction = predictor.Look(request);
    return std::count_if(prediction.candidates.begin(), prediction.candidates.end(),
                         [&](const PredictedConfig& one) {
                           EXPECT_TRUE(std::isfinite(one.estimate.log_seconds));
                           return FamilyOf(one.config) == unseen;
                         });
  };
  EXPECT_EQ(of_unseen({kHere, 65536, false, {}}), 0);
  EXPECT_EQ(of_unseen({kHere, 65536, false, {unseen}}), 127);
}

TEST_F(PredictorTest, TheSameGridGivesTheSameAnswers) {
  Recipe recipe = Flat(&Smooth);
  recipe.noise = 0.02;
  const Grid grid = MeasureGrid(recipe);
  const Predictor one = Learn(grid);
  const Predictor two = Learn(grid);
  for (const uint64_t bytes : {uint64_t{4096}, uint64_t{100000}}) {
    const Prediction a = one.Look({kHere, bytes, true, {}});
    const Prediction b = two.Look({kHere, bytes, true, {}});
    ASSERT_EQ(a.candidates.size(), b.candidates.size());
    for (size_t i = 0; i < a.candidates.size(); ++i) {
      EXPECT_EQ(a.candidates[i].estimate.log_seconds, b.candidates[i].estimate.log_seconds);
      EXPECT_EQ(a.candidates[i].estimate.doubt, b.candidates[i].estimate.doubt);
    }
  }
}

TEST_F(PredictorTest, TreesLearnTimesAgainstTheDefault) {
  const Recipe recipe = Flat(&BestIsAFifthFaster);
  FitOptions options = QuickFit();
  options.trees.rate = 0.3;
  options.members = 1;
  const Predictor predictor = Learn(MeasureGrid(recipe), options);
  EXPECT_NEAR(predictor.PredictRow(kHere, 65536, kBest), std::log(0.8), 0.05);
  EXPECT_NEAR(predictor.PredictRow(kHere, 65536, {kTree, kLl, 8, 0}), std::log(1.1), 0.05);
}

TEST_F(PredictorTest, TheOriginalLearnsBusBandwidth) {
  const Recipe recipe = Flat(&BestIsAFifthFaster);
  FitOptions options = QuickFit();
  options.objective = Objective::kBusBandwidth;
  options.trees.rate = 0.3;
  const Predictor predictor = Learn(MeasureGrid(recipe), options);
  EXPECT_EQ(predictor.objective(), Objective::kBusBandwidth);
  const uint64_t bytes = recipe.sizes.back();
  const double gigabytes =
      static_cast<double>(bytes) * 1.75 / recipe.seconds(kHere, bytes, kBest) / 1e9;
  EXPECT_NEAR(predictor.PredictRow(kHere, bytes, kBest), gigabytes, 0.05 * gigabytes);
  const ModelChoice choice = At(predictor, bytes);
  EXPECT_FALSE(choice.leave_default) << "it knows no default";
  EXPECT_FALSE(choice.gain.has_value());
  EXPECT_LT(predictor.PredictRow(kHere, bytes, {kTree, kLl, 8, 0}), 0.8 * gigabytes);
}

TEST_F(PredictorTest, TheDefaultAloneTeachesNothing) {
  Recipe recipe = Flat(&BestIsAFifthFaster);
  recipe.configs = {{}};
  const Result<Predictor> none = Predictor::Fit(MeasureGrid(recipe), QuickFit());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), ErrorCode::kNotFound);
}

TEST_F(PredictorTest, OneConfigurationAtOneSizeIsEnoughToAsk) {
  Recipe recipe = Flat(&BestIsAFifthFaster);
  recipe.sizes = {65536};
  recipe.configs = {kBest, {}};
  const Predictor predictor = Learn(MeasureGrid(recipe));
  const Prediction prediction = predictor.Look({kHere, 65536, false, {}});
  ASSERT_EQ(prediction.candidates.size(), 1u);
  EXPECT_TRUE(std::isfinite(prediction.candidates[0].estimate.log_seconds));
  EXPECT_NEAR(std::exp(prediction.library_default->log_seconds -
                       prediction.candidates[0].estimate.log_seconds),
              1.25, 0.02);
}

TEST(Objective, NamesAndBack) {
  for (const Objective objective : {Objective::kTime, Objective::kBusBandwidth}) {
    EXPECT_EQ(ParseObjective(ObjectiveName(objective)).value(), objective);
  }
  const Result<Objective> unknown = ParseObjective("tim");
  ASSERT_FALSE(unknown.ok());
  EXPECT_TRUE(Has(unknown.status().message(), "did you mean 'time'")) << unknown.status().message();
}

}  // namespace
}  // namespace diapason::model
