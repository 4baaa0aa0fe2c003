#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "model/cost_curve.h"
#include "model/local_model.h"
#include "model/testing.h"

namespace diapason::model {
namespace {

// Ten microseconds, 2 GB/s a channel, 100 GB/s at most, a tenth of a microsecond for a channel.
CostCurve Typical() {
  CostCurve curve;
  curve.at[CostCurve::kStart] = std::log(1e-5);
  curve.at[CostCurve::kLane] = std::log(1 / 2e9);
  curve.at[CostCurve::kWire] = std::log(1 / 100e9);
  curve.at[CostCurve::kEach] = std::log(1e-7);
  return curve;
}

// A prior that is off by a factor of three in everything, and knows that it may be.
CurvePrior Vague() {
  CurvePrior prior{Typical(), {1, 1, 1, 1}};
  for (size_t i = 0; i < prior.centre.at.size(); ++i) prior.centre.at[i] += i % 2 == 0 ? 1.1 : -1.1;
  return prior;
}

std::vector<CurvePoint> PointsOf(const CostCurve& curve, double noise) {
  std::vector<CurvePoint> points;
  const CounterRandom random(3, 1);
  for (int doubling = 10; doubling <= 30; ++doubling) {
    for (const int channels : {1, 2, 4, 8, 16, 32, 64}) {
      const double log_bytes = doubling * std::log(2);
      points.push_back(
          {log_bytes, std::log(channels),
           curve.LogSeconds(log_bytes, std::log(channels)) + noise * random.Normal(points.size())});
    }
  }
  return points;
}

TEST(CostCurve, HasTheRegimesItPromises) {
  const CostCurve curve = Typical();
  // Nothing to move: the start-up, and what a channel adds.
  EXPECT_NEAR(std::exp(curve.LogSeconds(0, 0)), 1.01e-5, 1e-7);
  EXPECT_NEAR(std::exp(curve.LogSeconds(0, std::log(100))), 2e-5, 1e-7);
  // A lot on one channel: the channel's pace; on many: the wire's.
  const double huge = std::log(1e12);
  EXPECT_NEAR(std::exp(curve.LogSeconds(huge, 0)), 1e12 / 2e9, 1);
  EXPECT_NEAR(std::exp(curve.LogSeconds(huge, std::log(1000))), 1e12 / 100e9, 0.5);
  // Larger is never faster.
  for (const double channels : {0.0, 2.0, 4.0}) {
    for (double log_bytes = 0; log_bytes < 30; log_bytes += 0.5) {
      EXPECT_LE(curve.LogSeconds(log_bytes, channels), curve.LogSeconds(log_bytes + 0.5, channels));
    }
  }
}

TEST(CostCurve, FitFindsTheCurveThatMadeThePoints) {
  const CostCurve truth = Typical();
  const FittedCurve exact = FitCurve(PointsOf(truth, 0), Vague(), 0.001);
  for (size_t i = 0; i < truth.at.size(); ++i) {
    EXPECT_NEAR(exact.curve.at[i], truth.at[i], 0.01) << i;
  }
  const FittedCurve noisy = FitCurve(PointsOf(truth, 0.05), Vague(), 0.05);
  for (size_t i = 0; i < truth.at.size(); ++i) {
    EXPECT_NEAR(noisy.curve.at[i], truth.at[i], 4 * std::sqrt(noisy.covariance[i][i])) << i;
    EXPECT_LT(noisy.covariance[i][i], 0.05) << i;
  }
}

TEST(CostCurve, WithoutPointsItIsThePrior) {
  const CurvePrior prior = Vague();
  const FittedCurve fitted = FitCurve({}, prior, 0.1);
  for (size_t i = 0; i < prior.width.size(); ++i) {
    EXPECT_DOUBLE_EQ(fitted.curve.at[i], prior.centre.at[i]);
    for (size_t j = 0; j < prior.width.size(); ++j) {
      EXPECT_NEAR(fitted.covariance[i][j], i == j ? prior.width[i] * prior.width[i] : 0, 1e-12);
    }
  }
  // All start-up at size nothing on few channels, so that is how unknown it is.
  EXPECT_NEAR(fitted.Doubt(0, 0), 1, 0.05);
}

TEST(CostCurve, DoubtFallsWithPoints) {
  const std::vector<CurvePoint> points = PointsOf(Typical(), 0.05);
  double before = INFINITY;
  // Every seventh size and channel count, then more and more of them.
  for (const size_t step : {points.size(), size_t{20}, size_t{5}, size_t{1}}) {
    std::vector<CurvePoint> some;
    for (size_t i = 0; i < points.size(); i += step) some.push_back(points[i]);
    const double doubt = FitCurve(some, Vague(), 0.05).Doubt(std::log(1e7), std::log(8));
    EXPECT_LT(doubt, before) << step;
    before = doubt;
  }
  EXPECT_LT(before, 0.05);
}

TEST(CostCurve, APointThatIsNoNumberLeavesThePrior) {
  const std::vector<CurvePoint> points = {{std::log(1e6), 0, NAN}, {NAN, 0, std::log(1e-3)}};
  const FittedCurve fitted = FitCurve(points, Vague(), 0.05);
  EXPECT_EQ(fitted.curve.at, Vague().centre.at);
  EXPECT_EQ(fitted.Doubt(std::log(1e6), 0), 0);
}

// A family whose times depend on the bytes per channel alone, with a bump no curve has.
double Bumpy(double log_bytes, int channels) {
  const double lane = log_bytes - std::log(channels);
  return Typical().LogSeconds(lane, 0) + 0.3 * std::exp(-std::pow((lane - std::log(4e5)) / 0.8, 2));
}

FittedCurve Known() { return FitCurve({}, {Typical(), {0.5, 0.5, 0.5, 0.5}}, 0.1); }

std::vector<FamilyModel::Observation> BumpyAt(const std::vector<int>& channels, double noise) {
  std::vector<FamilyModel::Observation> observations;
  for (int doubling = 12; doubling <= 28; ++doubling) {
    for (const int count : channels) {
      const double log_bytes = doubling * std::log(2);
      observations.push_back({log_bytes, count, Bumpy(log_bytes, count), noise});
    }
  }
  return observations;
}

TEST(FamilyModel, PassesNearExactMeasurements) {
  const FamilyModel model(Known(), BumpyAt({1, 4, 16}, 1e-4));
  EXPECT_FALSE(model.empty());
  for (const auto& one : BumpyAt({1, 4, 16}, 0)) {
    const Estimate estimate = model.At(one.log_bytes, one.channels);
    EXPECT_NEAR(estimate.log_seconds, one.log_seconds, 0.003);
    EXPECT_LT(estimate.doubt, 0.05);
  }
}

TEST(FamilyModel, ANoisyMeasurementIsDrawnTowardsItsNeighbours) {
  std::vector<FamilyModel::Observation> observations = BumpyAt({4, 8, 16}, 0.005);
  auto& odd = observations[observations.size() / 2];
  const double truth = odd.log_seconds;
  odd.log_seconds -= 0.3;
  odd.noise = 0.3;
  const double drawn =
      FamilyModel(Known(), observations).At(odd.log_bytes, odd.channels).log_seconds;
  EXPECT_NEAR(drawn, truth, 0.05);
  // If it were exact, its neighbours would follow it.
  odd.noise = 1e-4;
  const double kept =
      FamilyModel(Known(), observations).At(odd.log_bytes, odd.channels).log_seconds;
  EXPECT_LT(kept, drawn - 0.1);
}

TEST(FamilyModel, CarriesFromOneChannelCountToAnother) {
  const FamilyModel model(Known(), BumpyAt({2, 8, 16}, 1e-3));
  const FamilyModel nothing(Known(), {});
  EXPECT_TRUE(nothing.empty());
  double off = 0;
  double off_alone = 0;
  for (int doubling = 13; doubling <= 26; ++doubling) {
    const double log_bytes = doubling * std::log(2);
    const Estimate estimate = model.At(log_bytes, 4);
    const double error = estimate.log_seconds - Bumpy(log_bytes, 4);
    EXPECT_LT(std::fabs(error), 3 * estimate.doubt) << doubling;
    off = std::max(off, std::fabs(error));
    off_alone =
        std::max(off_alone, std::fabs(nothing.At(log_bytes, 4).log_seconds - Bumpy(log_bytes, 4)));
  }
  EXPECT_LT(off, 0.06);
  EXPECT_GT(off_alone, 0.25) << "the curve alone does not know the bump";
}

TEST(FamilyModel, DoubtGrowsWithTheDistance) {
  const FamilyModel model(Known(), BumpyAt({4}, 1e-3));
  const double log_bytes = 20 * std::log(2);
  double before = 0;
  for (const int channels : {4, 5, 8, 16, 64}) {
    const double doubt = model.At(log_bytes, channels).doubt;
    EXPECT_GT(doubt, before) << channels;
    before = doubt;
  }
  EXPECT_GT(model.At(40 * std::log(2), 4).doubt, 5 * model.At(log_bytes, 4).doubt);
  EXPECT_GT(FamilyModel(Known(), {}).At(log_bytes, 4).doubt, before) << "nothing is less still";
  FamilyModel doubled = model;
  doubled.set_scale(2);
  EXPECT_DOUBLE_EQ(doubled.At(log_bytes, 9).doubt, 2 * model.At(log_bytes, 9).doubt);
  EXPECT_DOUBLE_EQ(doubled.At(log_bytes, 9).log_seconds, model.At(log_bytes, 9).log_seconds);
}

TEST(FamilyModel, LeaveMembersOutIsWhatRefittingWithoutThemSays) {
  const std::vector<FamilyModel::Observation> all = BumpyAt({2, 4, 16}, 0.01);
  const FamilyModel::Check check = FamilyModel(Known(), all).LeaveMembersOut();
  EXPECT_EQ(check.count, all.size());
  ASSERT_TRUE(std::isfinite(check.squares));
  ASSERT_TRUE(std::isfinite(check.square_errors));
  double square_errors = 0;
  for (const int left : {2, 4, 16}) {
    std::vector<FamilyModel::Observation> others;
    for (const auto& one : all) {
      if (one.channels != left) others.push_back(one);
    }
    const FamilyModel without(Known(), others);
    for (const auto& one : all) {
      if (one.channels != left) continue;
      const double error = without.At(one.log_bytes, one.channels).log_seconds - one.log_seconds;
      square_errors += error * error;
    }
  }
  EXPECT_NEAR(check.square_errors, square_errors, 1e-6 * (1 + square_errors));
  // One member cannot be predicted from others.
  EXPECT_EQ(FamilyModel(Known(), BumpyAt({4}, 0.01)).LeaveMembersOut().count, 0u);
  EXPECT_EQ(FamilyModel(Known(), {}).LeaveMembersOut().count, 0u);
}

TEST(FamilyModel, ManyObservationsAreThinnedOut) {
  std::vector<int> channels;
  for (int count = 1; count <= 64; ++count) channels.push_back(count);
  const std::vector<FamilyModel::Observation> all = BumpyAt(channels, 0.01);
  ASSERT_GT(all.size(), 256u);
  const FamilyModel model(Known(), all);
  double worst = 0;
  for (const auto& one : all) {
    const Estimate estimate = model.At(one.log_bytes, one.channels);
    worst = std::max(worst, std::fabs(estimate.log_seconds - one.log_seconds));
    ASSERT_TRUE(std::isfinite(estimate.doubt));
  }
  EXPECT_LT(worst, 0.06);
  const FamilyModel::Check check = model.LeaveMembersOut();
  EXPECT_EQ(check.count, 192u);
  EXPECT_TRUE(model.thinned());
  EXPECT_TRUE(std::isfinite(check.squares));
}

TEST(FitScenes, FamiliesThatWereNotMeasuredAreThereAndDoubted) {
  Recipe recipe;
  recipe.sizes = Doublings(4096, 12);
  recipe.configs = WithChannels(kRing, kSimple, {2, 4, 8, 16});
  recipe.seconds = [](const CallPlace&, uint64_t bytes, const Config& config) {
    return std::exp(Bumpy(std::log(static_cast<double>(bytes)), config.channels));
  };
  const Grid grid = MeasureGrid(recipe);
  const ConfigFamily ring{kRing, kSimple, 0, true};
  const ConfigFamily tree{kTree, kLl, 0, true};
  const std::vector<SceneModel> models = FitScenes(grid, {{ring, tree}});
  ASSERT_EQ(models.size(), 1u);
  ASSERT_EQ(models[0].size(), 2u);
  const double log_bytes = std::log(65536.0);
  const Estimate known = models[0].at(ring).At(log_bytes, 4);
  const Estimate unknown = models[0].at(tree).At(log_bytes, 4);
  EXPECT_NEAR(known.log_seconds, Bumpy(log_bytes, 4), 0.005);
  EXPECT_TRUE(models[0].at(tree).empty());
  EXPECT_TRUE(std::isfinite(unknown.log_seconds));
  EXPECT_GT(unknown.doubt, 10 * known.doubt);
}

TEST(FitScenes, RealFamiliesArePredictedAboutAsWellAsTheySay) {
  const Grid& grid = RealGrid();
  ASSERT_EQ(grid.scenes.size(), 2u);
  const std::vector<SceneModel> models =
      FitScenes(grid, std::vector<std::vector<ConfigFamily>>(grid.scenes.size()));
  FamilyModel::Check all;
  for (const SceneModel& model : models) {
    for (const auto& [family, one] : model) {
      const FamilyModel::Check check = one.LeaveMembersOut();
      all.squares += check.squares;
      all.square_errors += check.square_errors;
      all.count += check.count;
    }
  }
  ASSERT_GT(all.count, 1000u);
  const auto count = static_cast<double>(all.count);
  EXPECT_LT(std::sqrt(all.square_errors / count), 0.3) << "of a time, in logarithms";
  EXPECT_GT(std::sqrt(all.squares / count), 0.5);
  EXPECT_LT(std::sqrt(all.squares / count), 2);
}

}  // namespace
}  // namespace diapason::model
