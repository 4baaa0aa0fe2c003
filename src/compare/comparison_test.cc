#include "compare/comparison.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace diapason::compare {
namespace {

dataset::Point PointAt(uint64_t bytes) {
  dataset::Point point;
  point.collective = "allreduce";
  point.bytes = bytes;
  point.ranks = 4;
  return point;
}

// Launches with the given factor of each size's time; noise from a fixed seed.
struct Plant {
  int launches = 8;
  double between = 0.03;
  double inside = 0.02;
  std::vector<double> factors = std::vector<double>(8, 1.0);
  unsigned seed = 1;
};

Side Planted(const Plant& plant) {
  Side side;
  side.name = "planted";
  std::mt19937 random(plant.seed);
  std::normal_distribution<double> normal;
  for (int launch = 0; launch < plant.launches; ++launch) {
    side.launches.push_back({"launch", 0, {}});
    for (size_t i = 0; i < plant.factors.size(); ++i) {
      const double level = plant.factors[i] * std::exp(plant.between * normal(random));
      std::vector<double> times;
      for (int round = 0; round < 10; ++round) {
        times.push_back(1e-4 * level * std::exp(plant.inside * normal(random)));
      }
      side.calls[PointAt(1024 << i)].figures.push_back(FigureOf(times, 0, 0));
    }
  }
  return side;
}

TEST(ComparisonTest, TheSameThingRaisesFewAlarms) {
  int wrong = 0;
  int failing = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Plant plant;
    plant.between = 0.08;
    plant.launches = 3;
    plant.seed = 2 * seed;
    const Side before = Planted(plant);
    ++plant.seed;
    const Comparison result = Compare(before, Planted(plant), {0.05, 0.05});
    wrong += result.Count(Verdict::kSlower) + result.Count(Verdict::kFaster) > 0 ? 1 : 0;
    failing += result.Failing() > 0 ? 1 : 0;
  }
  EXPECT_LE(wrong, 10);
  EXPECT_LE(failing, 4);
}

TEST(ComparisonTest, APlantedSlowdownOfOneSizeIsFound) {
  int found = 0;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    Plant plant;
    plant.seed = 2 * seed;
    const Side before = Planted(plant);
    ++plant.seed;
    plant.factors[3] = 1.10;
    const Comparison result = Compare(before, Planted(plant), {});
    found += result.calls[3].verdict == Verdict::kSlower ? 1 : 0;
  }
  EXPECT_GE(found, 45);
}

TEST(ComparisonTest, SameNeedsAnIntervalWithinTheThreshold) {
  Plant plant;
  plant.launches = 10;
  plant.between = 0.01;
  const Side before = Planted(plant);
  plant.seed = 9;
  const Side after = Planted(plant);
  EXPECT_EQ(Compare(before, after, {}).Overall(), Verdict::kSame);
  const Comparison strict = Compare(before, after, {0.001});
  EXPECT_EQ(strict.Overall(), Verdict::kCannotTell);
  EXPECT_EQ(strict.calls[0].why, "the launches differ too much");
}

TEST(ComparisonTest, FailingNeedsMoreThanTheLimitBeyondDoubt) {
  Plant plant;
  plant.between = 0.005;
  const Side before = Planted(plant);
  plant.seed = 7;
  plant.factors[0] = 1.2;
  plant.factors[1] = 1.06;
  const Side after = Planted(plant);
  const Comparison result = Compare(before, after, {0.05, 0.10});
  EXPECT_TRUE(result.calls[0].fails);
  EXPECT_FALSE(result.calls[1].fails);
  EXPECT_EQ(result.calls[1].verdict, Verdict::kSlower);
  EXPECT_EQ(result.Failing(), 1u);
  EXPECT_EQ(result.Overall(), Verdict::kSlower);
}

TEST(ComparisonTest, CallsOfOneSideAndChangesOfTheMachineAreListed) {
  Plant plant;
  Side before = Planted(plant);
  Side after = Planted(plant);
  before.calls[PointAt(7)].figures.push_back(FigureOf({1.0}, 0, 0));
  after.calls[PointAt(9)].figures.push_back(FigureOf({1.0}, 0, 0));
  for (Launch& launch : before.launches) {
    launch.machine.library_version = "2.28.3";
    launch.machine.tool = "diapason 1";
  }
  for (Launch& launch : after.launches) {
    launch.machine.library_version = "2.28.9";
    launch.machine.environment["NCCL_PROTO"] = "LL";
  }
  const Comparison result = Compare(before, after, {});
  ASSERT_EQ(result.only_old.size(), 1u);
  EXPECT_EQ(result.only_old[0].bytes, 7u);
  ASSERT_EQ(result.only_new.size(), 1u);
  EXPECT_EQ(result.only_new[0].bytes, 9u);
  ASSERT_EQ(result.differences.size(), 2u);
  EXPECT_EQ(result.differences[0].what, "library version");
  EXPECT_EQ(result.differences[0].after, "2.28.9");
  EXPECT_EQ(result.differences[1].what, "NCCL_PROTO");
  EXPECT_EQ(result.differences[1].before, "");
}

TEST(ComparisonTest, DocumentsSayTheSame) {
  Plant plant;
  plant.between = 0.005;
  const Side before = Planted(plant);
  plant.seed = 7;
  plant.factors[0] = 1.3;
  Side after = Planted(plant);
  after.name = "<new> | \x1b[31m";
  const Comparison result = Compare(before, after, {0.05, 0.05});
  const auto json = nlohmann::json::parse(ComparisonJson(result));
  EXPECT_EQ(json["verdict"], "slower");
  EXPECT_EQ(json["failing"], 1);
  EXPECT_EQ(json["calls"].size(), 8u);
  EXPECT_EQ(json["calls"][0]["verdict"], "slower");
  EXPECT_NEAR(json["calls"][0]["change"].get<double>(), 0.3, 0.05);
  const std::string junit = ComparisonJunit(result);
  EXPECT_NE(junit.find("tests=\"8\" failures=\"1\""), std::string::npos);
  EXPECT_NE(junit.find("<failure message=\"slower: "), std::string::npos);
  const std::string markdown = ComparisonMarkdown(result);
  EXPECT_NE(markdown.find("### Collectives: slower"), std::string::npos);
  EXPECT_LT(markdown.find("| slower, fails |"), markdown.find("| same |"));
  const std::string html = ComparisonHtml(result, "<b>");
  EXPECT_NE(html.find("<h1>&#60;b&#62;</h1>"), std::string::npos);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("slower, fails"), std::string::npos);
  const std::string text = ComparisonText(result);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("1 call slower by more than 5 % beyond doubt"), std::string::npos);
}

TEST(ComparisonTest, TheGeometricMeanHasAnIntervalByLaunches) {
  Plant plant;
  const Side before = Planted(plant);
  plant.seed = 5;
  plant.factors.assign(8, 1.1);
  const Comparison result = Compare(before, Planted(plant), {});
  EXPECT_NEAR(result.geometric_mean, 0.1, 0.03);
  ASSERT_TRUE(result.overall.has_value());
  EXPECT_EQ(result.overall_calls, 8u);
  EXPECT_NEAR(result.overall->share(), result.geometric_mean, 1e-9);
  EXPECT_GT(result.overall->low(), 0.05);
}

}  // namespace
}  // namespace diapason::compare
