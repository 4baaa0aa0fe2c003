#include "model/transfer.h"

#include <gtest/gtest.h>

#include "model/plan.h"
#include "model/testing.h"

namespace diapason::model {
namespace {

// kBest gains `gain(nodes)`; the others lose.
Grid OnNodes(const std::vector<int>& nodes, const std::function<double(int nodes)>& gain) {
  Recipe recipe = Flat(&BestIsAFifthFaster);
  recipe.places.clear();
  for (const int count : nodes) recipe.places.push_back({Collective::kAllReduce, count, 8 * count});
  recipe.noise = 0.002;
  recipe.seconds = [gain](const CallPlace& place, uint64_t bytes, const Config& config) {
    const double own = place.nodes * (2e-5 + static_cast<double>(bytes) * 1e-11);
    return config.IsDefault() ? own : config == kBest ? own / gain(place.nodes) : own * 1.2;
  };
  return MeasureGrid(recipe);
}

CallPlace Nodes(int nodes) { return {Collective::kAllReduce, nodes, 8 * nodes}; }

constexpr uint64_t kSize = 65536;

TEST(Transfer, GainsBetweenAndBeyondTheMeasuredNumbersOfNodes) {
  const Grid grid = OnNodes({2, 4, 16}, [](int) { return 1.25; });
  const Transfer transfer(grid.scenes);
  ASSERT_EQ(transfer.trials().size(), 1u);
  EXPECT_TRUE(transfer.trials()[0].Holds());
  for (const int nodes : {8, 32}) {
    const std::optional<Prediction> prediction = transfer.At(Nodes(nodes), kSize);
    ASSERT_TRUE(prediction.has_value()) << nodes;
    const ModelChoice choice = Choose(*prediction, {});
    EXPECT_FALSE(choice.leave_default) << choice.why;
    ASSERT_TRUE(choice.best.has_value());
    EXPECT_EQ(choice.best->config, kBest);
    EXPECT_EQ(choice.best->basis, Basis::kTransferred);
    EXPECT_NEAR(choice.gain->expected, 1.25, 0.03);
  }
  EXPECT_EQ(transfer.Unmeasured(), (std::vector<CallPlace>{Nodes(8), Nodes(32)}));
}

TEST(Transfer, WidensWithTheDistanceAndThenStops) {
  const Transfer transfer(OnNodes({2, 4}, [](int) { return 1.4; }).scenes);
  const std::optional<Prediction> near = transfer.At(Nodes(8), kSize);
  const std::optional<Prediction> far = transfer.At(Nodes(16), kSize);
  ASSERT_TRUE(near.has_value() && far.has_value());
  EXPECT_GT(near->bend, 0);
  EXPECT_GT(far->bend, near->bend);
  EXPECT_GT(far->time_bend, near->time_bend);
  EXPECT_FALSE(transfer.At(Nodes(32), kSize).has_value());
}

TEST(Transfer, OneNodeTakesNoPart) {
  const Transfer one(OnNodes({1, 2}, [](int) { return 1.4; }).scenes);
  EXPECT_TRUE(one.trials().empty());
  EXPECT_FALSE(one.At(Nodes(4), kSize).has_value());
  // It neither answers nor is answered for.
  const Transfer several(
      OnNodes({1, 2, 4}, [](int nodes) { return nodes == 1 ? 0.5 : 1.4; }).scenes);
  EXPECT_TRUE(several.At(Nodes(8), kSize).has_value());
  EXPECT_FALSE(Transfer(OnNodes({2, 4}, [](int) { return 1.4; }).scenes)
                   .At({Collective::kAllReduce, 1, 8}, kSize)
                   .has_value());
}

TEST(Transfer, NothingWhereGainsDoNotCarryOver) {
  const Transfer transfer(
      OnNodes({2, 4, 8}, [](int nodes) { return nodes == 4 ? 0.7 : 1.4; }).scenes);
  ASSERT_EQ(transfer.trials().size(), 1u);
  EXPECT_GT(transfer.trials()[0].harmful, 0u);
  EXPECT_FALSE(transfer.trials()[0].Holds());
  EXPECT_FALSE(transfer.At(Nodes(16), kSize).has_value());
  EXPECT_TRUE(transfer.Unmeasured().empty());
}

TEST(Transfer, NothingWhereNothingIsFaster) {
  const Transfer transfer(OnNodes({2, 4, 8}, [](int) { return 0.9; }).scenes);
  ASSERT_EQ(transfer.trials().size(), 1u);
  EXPECT_EQ(transfer.trials()[0].changed, 0u);
  EXPECT_FALSE(transfer.At(Nodes(16), kSize).has_value());
}

TEST(Transfer, PlansSayWhatIsTransferred) {
  const Grid grid = OnNodes({2, 4, 16}, [](int) { return 1.4; });
  const Result<PlannedPolicy> plan = MakePlan(&grid, nullptr, {});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  size_t transferred = 0;
  for (const PlannedRow& row : plan.value().rows) {
    const bool measured = row.rule.nodes == 2 || row.rule.nodes == 4 || row.rule.nodes == 16;
    EXPECT_EQ(row.basis == Basis::kTransferred, !measured) << row.rule.nodes;
    EXPECT_EQ(row.rule.ranks, 8 * row.rule.nodes);
    if (measured) continue;
    ++transferred;
    EXPECT_EQ(row.rule.config, kBest);
    EXPECT_EQ(row.KnownFrom(), "transferred");
    EXPECT_TRUE(Has(row.Remark(), "transferred")) << row.Remark();
    EXPECT_EQ(row.samples, 0u);
  }
  EXPECT_EQ(transferred, 2u);  // 8 and 32 nodes
  PlanOptions without;
  without.transfer = false;
  const Result<PlannedPolicy> few = MakePlan(&grid, nullptr, without);
  ASSERT_TRUE(few.ok());
  EXPECT_EQ(few.value().rows.size(), plan.value().rows.size() - transferred);
}

}  // namespace
}  // namespace diapason::model
