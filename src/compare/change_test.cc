#include "compare/change.h"

#include <gtest/gtest.h>

#include <cmath>

namespace diapason::compare {
namespace {

LaunchFigure Figure(double seconds, double started = 0) { return FigureOf({seconds}, 0, started); }
std::vector<LaunchFigure> Figures(const std::vector<double>& seconds, double first = 0,
                                  double step = 0) {
  std::vector<LaunchFigure> list;
  for (size_t i = 0; i < seconds.size(); ++i) {
    list.push_back(Figure(seconds[i], first + step * static_cast<double>(i)));
  }
  return list;
}

TEST(ChangeTest, TheUnitIsTheLaunchHoweverManySamplesItHas) {
  // Within a launch nothing varies; between launches 10 %. The same figures with a thousand
  // samples each must not make the interval much narrower.
  std::vector<LaunchFigure> few;
  std::vector<LaunchFigure> many;
  for (const double time : {1.0, 1.1, 0.9, 1.05}) {
    few.push_back(FigureOf(std::vector<double>(6, time), 0, 0));
    many.push_back(FigureOf(std::vector<double>(1000, time), 0, 0));
  }
  const Change narrow = EstimateChange(few, few);
  const Change wide = EstimateChange(many, many);
  EXPECT_DOUBLE_EQ(narrow.high(), wide.high());
  EXPECT_GT(wide.high(), 0.10);
  EXPECT_DOUBLE_EQ(wide.share(), 0);
}

TEST(ChangeTest, TheIntervalIsStudentsOverBothSides) {
  const Change change = EstimateChange(Figures({1.0, 1.02, 0.98}), Figures({1.2, 1.22, 1.18}));
  ASSERT_TRUE(change.has_interval());
  EXPECT_FALSE(change.assumed);
  EXPECT_DOUBLE_EQ(change.freedom, 4);
  EXPECT_NEAR(change.share(), 0.2, 0.002);
  EXPECT_GT(change.low(), 0.1);
  EXPECT_LT(change.PValue(), 0.01);
  EXPECT_LT(change.PValueAbove(0.05), 0.01);
  EXPECT_GT(change.PValueAbove(0.25), 0.5);
}

TEST(ChangeTest, OneValueOnEachSideHasNeitherIntervalNorRange) {
  const Change change = EstimateChange({Figure(1)}, {Figure(3)});
  EXPECT_FALSE(change.has_interval());
  EXPECT_FALSE(change.has_range);
  EXPECT_EQ(change.PValue(), 1);
  EXPECT_EQ(change.PValueAbove(0.05), 1);
}

TEST(ChangeTest, FewSamplesOfOneLaunchHaveARange) {
  const Change change =
      EstimateChange({FigureOf({1, 1.1, 0.9}, 0, 0)}, {FigureOf({1.2, 1.3}, 0, 0)});
  EXPECT_FALSE(change.has_interval());
  ASSERT_TRUE(change.has_range);
  EXPECT_NEAR(change.range_low, 1.2 / 1.1 - 1, 1e-12);
  EXPECT_NEAR(change.range_high, 1.3 / 0.9 - 1, 1e-12);
}

TEST(ChangeTest, OneLaunchOnEachSideIsJudgedByTheAssumedSpread) {
  const std::vector<double> times(12, 1.0);
  const Change change = EstimateChange({FigureOf(times, 0, 0)}, {FigureOf(times, 0, 0)});
  ASSERT_TRUE(change.has_interval());
  EXPECT_TRUE(change.assumed);
  EXPECT_DOUBLE_EQ(change.freedom, kAssumedFreedom);
  EXPECT_NEAR(change.error, kAssumedSpread * std::sqrt(2), 1e-9);
  EXPECT_GT(change.high(), 0.15);
}

TEST(ChangeTest, TheAssumedSpreadWidensAndNeverNarrows) {
  // Launches that agree may do so by luck.
  const Change lucky = EstimateChange(Figures({1.0, 1.0}), Figures({1.0, 1.0}));
  EXPECT_NEAR(lucky.error, kAssumedSpread * std::sqrt(2.0 / 4), 1e-9);
  // Launches that differ by more than is assumed: Student's interval of the data alone.
  const Change wide = EstimateChange(Figures({1.0, 1.5}), Figures({1.0, 1.5}));
  EXPECT_NEAR(wide.error, std::log(1.5) / std::sqrt(2), 1e-9);
  EXPECT_DOUBLE_EQ(wide.freedom, 2);
}

TEST(ChangeTest, ADisturbedLaunchDoesNotDecide) {
  const std::vector<double> before = {1, 1.01, 0.99, 1, 1.02, 0.98, 1, 1.01, 0.99, 1};
  std::vector<double> after = before;
  for (double& time : after) time *= 1.1;
  after[4] *= 10;
  const Change change = EstimateChange(Figures(before), Figures(after));
  EXPECT_NEAR(change.share(), 0.1, 0.01);
  EXPECT_GT(change.low(), 0.05);
  // Two tenths of each side are cut at both ends.
  EXPECT_DOUBLE_EQ(change.freedom, 6 + 6 - 2);
}

TEST(ChangeTest, TheSpreadOfOneSideHoldsForASingleValueOfTheOther) {
  const Change change = EstimateChange(Figures({1.0, 1.01, 0.99, 1.0}), {Figure(1.5)});
  ASSERT_TRUE(change.has_interval());
  EXPECT_GT(change.low(), 0.2);
}

TEST(ChangeTest, LaunchesThatTakeTurnsArePaired) {
  // Both drift to double their time; the new one is always 5 % slower.
  std::vector<double> before;
  std::vector<double> after;
  for (int i = 0; i < 12; ++i) {
    before.push_back(1 + i / 11.0);
    after.push_back(1.05 * before.back());
  }
  const Change turns = EstimateChange(Figures(before, 100, 10), Figures(after, 105, 10));
  const Change blocks = EstimateChange(Figures(before, 100, 10), Figures(after, 500, 10));
  EXPECT_TRUE(turns.paired);
  EXPECT_FALSE(blocks.paired);
  EXPECT_NEAR(turns.share(), 0.05, 1e-9);
  EXPECT_GT(turns.low(), 0.02);
  EXPECT_LT(blocks.low(), -0.1);
}

TEST(ChangeTest, TurnsNeedTimesAndOneOfEachInEveryPair) {
  const std::vector<double> ten(kLeastPairs, 1.0);
  const std::vector<double> fewer(kLeastPairs - 1, 1.0);
  EXPECT_FALSE(TakeTurns(Figures(ten), Figures(ten)));
  EXPECT_TRUE(TakeTurns(Figures(ten, 10, 10), Figures(ten, 15, 10)));
  EXPECT_FALSE(TakeTurns(Figures(ten, 10, 10), Figures(ten, 10, 10)));
  EXPECT_FALSE(TakeTurns(Figures(fewer, 10, 10), Figures(fewer, 15, 10)));
  EXPECT_FALSE(TakeTurns(Figures(ten, 10, 10), Figures(ten, 500, 10)));
  // Old, new, new, old and so on: the order inside a pair does not matter.
  std::vector<LaunchFigure> before;
  std::vector<LaunchFigure> after;
  for (size_t i = 0; i < kLeastPairs; ++i) {
    const double at = 1 + 2 * static_cast<double>(i);
    before.push_back(Figure(1, i % 2 == 0 ? at : at + 1));
    after.push_back(Figure(1, i % 2 == 0 ? at + 1 : at));
  }
  EXPECT_TRUE(TakeTurns(before, after));
}

TEST(ChangeTest, DependentSamplesHaveAWideError) {
  // A slow wave: neighbours are alike. Blocks see it, single samples would not.
  std::vector<double> wave;
  for (int i = 0; i < 200; ++i) wave.push_back(std::exp(0.2 * std::sin(i * 0.0157 * 2)));
  const double naive = 0.2 * std::sqrt(0.5) / std::sqrt(200.0);
  EXPECT_GT(std::sqrt(FigureOf(wave, 0, 0).variance), 2 * naive);
}

TEST(ChangeTest, PrintedDigitsLimitWhatIsKnown) {
  const LaunchFigure figure = FigureOf(std::vector<double>(10, 0.32e-6), 0.016, 0);
  EXPECT_NEAR(std::sqrt(figure.variance), 0.016 / std::sqrt(3), 1e-9);
}

TEST(ChangeTest, HolmCorrectsInTheOrderOfPValues) {
  const std::vector<double> adjusted = HolmAdjusted({0.01, 0.04, 0.03, 0.5});
  EXPECT_DOUBLE_EQ(adjusted[0], 0.04);
  EXPECT_DOUBLE_EQ(adjusted[2], 0.09);
  EXPECT_DOUBLE_EQ(adjusted[1], 0.09);
  EXPECT_DOUBLE_EQ(adjusted[3], 0.5);
  EXPECT_TRUE(HolmAdjusted({}).empty());
}

}  // namespace
}  // namespace diapason::compare
