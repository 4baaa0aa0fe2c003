#include "comm/backends/sim/library.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"

namespace diapason::comm::sim {
namespace {

Cluster Shipped(const std::string& name) {
  Result<Cluster> cluster = LoadCluster(name);
  EXPECT_TRUE(cluster.ok()) << cluster.status().message();
  return std::move(cluster).value();
}

RankLayout Filled(const Cluster& cluster, int ranks) {
  const Result<RankLayout> layout = FillNodes(cluster, ranks);
  EXPECT_TRUE(layout.ok()) << layout.status().message();
  return layout.value();
}

// NCCL printed these itself: 4 ranks on one H200, each its own node.
TEST(Formula, GivesTheCostTableThatNcclPrinted) {
  const Cluster lab = Shipped("lab");
  const RankLayout layout = Filled(lab, 4);
  const Result<std::string> text =
      ReadFile(std::string(DIAPASON_SOURCE_DIR) + "/tests/data/h200_4ranks_tables.csv", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status().message();
  int compared = 0;
  for (const std::string_view line : Split(text.value(), '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string_view> cells = Split(line, ',');
    ASSERT_EQ(cells.size(), 6u);
    const Collective collective = ParseCollective(Library::kNccl, cells[0]).value();
    uint64_t bytes = 0;
    ASSERT_TRUE(ParseUnsigned(cells[1], &bytes));
    const int algorithm = ParseAlgorithm(Library::kNccl, collective, cells[2]).value();
    for (int protocol = 0; protocol < kProtocolCount; ++protocol) {
      const double theirs = std::atof(std::string(cells[3 + protocol]).c_str());
      const bool offered = WhyNotOffered(lab, layout, collective, algorithm, protocol).empty();
      EXPECT_EQ(offered, theirs >= 0) << line;
      if (!offered || theirs < 0) continue;
      const double ours = FormulaMicros(lab, layout, collective, bytes, algorithm, protocol);
      EXPECT_NEAR(ours / theirs, 1, 2e-5) << line;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 28);
}

// NCCL's log of two H100 (24 channels of 15 GB/s) says, as latency/bandwidth: ring/ll 7.8/141,
// ring/ll128 17.8/331.2, ring/simple 15.2/360 for allreduce; 7.2/282, 15.9/662.4, 11.8/720 for
// allgather; 7.2/141 and 11.8/360 for broadcast; 25/102 for nvls with 16 channels of 4 GB/s.
TEST(Formula, GivesWhatNcclLoggedForTwoH100) {
  Cluster cluster = Shipped("h100x8");
  cluster.formula.nvls_gbps = 4;
  const RankLayout two = Filled(cluster, 2);
  const auto check = [&](Collective collective, int algorithm, int protocol, double latency,
                         double bandwidth) {
    const uint64_t bytes = uint64_t{1} << 30;
    EXPECT_NEAR(FormulaMicros(cluster, two, collective, 0, algorithm, protocol), latency, 1e-9);
    EXPECT_NEAR(FormulaMicros(cluster, two, collective, bytes, algorithm, protocol),
                latency + static_cast<double>(bytes) / (1000 * bandwidth), 1e-3);
  };
  check(Collective::kAllReduce, kRing, kLl, 7.8, 141);
  check(Collective::kAllReduce, kRing, kLl128, 17.8, 331.2);
  check(Collective::kAllReduce, kRing, kSimple, 15.2, 360);
  check(Collective::kAllGather, kRing, kLl, 7.2, 282);
  check(Collective::kAllGather, kRing, kLl128, 15.9, 662.4);
  check(Collective::kReduceScatter, kRing, kSimple, 11.8, 720);
  check(Collective::kBroadcast, kRing, kLl, 7.2, 141);
  check(Collective::kReduce, kRing, kSimple, 11.8, 360);
  check(Collective::kAllReduce, kNvls, kSimple, 25, 102);
  check(Collective::kAllGather, kNvls, kSimple, 25, 25.5);
}

TEST(Formula, LatenciesAcrossNodes) {
  const Cluster cluster = Shipped("h100x8x4");
  const RankLayout layout = Filled(cluster, 32);
  // 8.4 + (62 - 6) * max(3.4, 3 * 1.0) + 6 * 14, times 1.4 from 64 bytes a channel and rank on.
  EXPECT_NEAR(FormulaMicros(cluster, layout, Collective::kAllReduce, 0, kRing, kSimple), 282.8,
              1e-9);
  // 6.8 + 2 * (7 * 0.6 + 2 * 5).
  EXPECT_NEAR(FormulaMicros(cluster, layout, Collective::kAllReduce, 0, kTree, kLl), 35.2, 1e-9);
  // 25 + 2 * 2 * 20.9.
  EXPECT_NEAR(FormulaMicros(cluster, layout, Collective::kAllReduce, 0, kNvlsTree, kSimple), 108.6,
              1e-9);
}

// A machine that can be computed by hand.
Cluster ByHand() {
  Cluster cluster = Shipped("a100x8");
  cluster.nodes = 4;
  cluster.gpus_per_node = 2;
  cluster.links = {10, 100, 2, 50, 20};
  PairCost pair;
  pair.base_us = 10;
  pair.hop_us = 1;
  pair.net_us = 5;
  pair.channel_us = 0.5;
  pair.channel_gbps = 1;
  pair.gbps = 1e6;
  pair.net_gbps = 1e6;
  for (auto& row : cluster.pairs) {
    for (auto& cell : row) cell = pair;
  }
  return cluster;
}

TEST(Machine, CostsWhatTheStepsAndTheWiresTake) {
  const Cluster cluster = ByHand();
  const RankLayout layout = Filled(cluster, 8);
  EXPECT_EQ(layout.nodes, 4);
  EXPECT_EQ(layout.per_node, 2);
  const auto micros = [&](Collective collective, int algorithm, uint64_t bytes, int channels) {
    return 1e6 * MachineSeconds(cluster, layout, collective, bytes, algorithm, kSimple, channels);
  };
  // 14 steps, 6 of them across: 10 + 8 + 30.
  EXPECT_NEAR(micros(Collective::kAllReduce, kRing, 0, 1), 48, 1e-9);
  // 8000 bytes on 2 channels: 0.5 for the second one, 14000 bytes at 2 GB/s.
  EXPECT_NEAR(micros(Collective::kAllReduce, kRing, 8000, 2), 48.5 + 7, 1e-9);
  EXPECT_NEAR(micros(Collective::kAllGather, kRing, 8000, 1), 10 + 4 + 15 + 7, 1e-9);
  EXPECT_NEAR(micros(Collective::kBroadcast, kRing, 8000, 1), 10 + 4 + 15 + 8, 1e-9);
  // Up and down: one step inside, two across.
  EXPECT_NEAR(micros(Collective::kAllReduce, kTree, 0, 1), 10 + 2 + 20, 1e-9);
}

TEST(Machine, ChannelsSaturate) {
  Cluster cluster = ByHand();
  cluster.nodes = 1;
  cluster.gpus_per_node = 8;
  cluster.pairs[kRing][kSimple]->gbps = 10;
  cluster.pairs[kRing][kSimple]->channel_us = 0;
  const RankLayout layout = Filled(cluster, 8);
  double before = 1e9;
  for (const int channels : {1, 2, 4, 8, 16, 32, 64}) {
    const double seconds =
        MachineSeconds(cluster, layout, Collective::kBroadcast, 1 << 30, kRing, kSimple, channels);
    EXPECT_LT(seconds, before);
    EXPECT_GT(seconds, (1 << 30) / 10e9);
    before = seconds;
  }
  EXPECT_NEAR(before, (1 << 30) / 10e9, 1e-3);
}

TEST(Machine, OperationsWithoutAChoice) {
  const Cluster cluster = ByHand();
  const RankLayout layout = Filled(cluster, 8);
  EXPECT_NEAR(SendSeconds(cluster, true, 100000), 13e-6, 1e-12);
  EXPECT_NEAR(SendSeconds(cluster, false, 100000), 34e-6, 1e-12);
  EXPECT_NEAR(BarrierSeconds(cluster, layout), (10 + 2 * (2 + 40)) * 1e-6, 1e-12);
  // 1 near and 6 far partners, eight at a time; 6 parts of 1000 bytes at 25 GB/s.
  EXPECT_NEAR(AllToAllSeconds(cluster, layout, 8000), (10 + 122.0 / 8 + 0.24) * 1e-6, 1e-12);
}

TEST(Estimate, TheDefaultIsTheLibrarysChoiceAndNotAlwaysTheBest) {
  const Cluster lab = Shipped("lab");
  const RankLayout layout = Filled(lab, 4);
  int wrong = 0;
  for (uint64_t bytes = 1024; bytes <= (8u << 20); bytes *= 2) {
    const Result<SimCost> chosen = Estimate(lab, layout, Collective::kAllReduce, bytes, {});
    ASSERT_TRUE(chosen.ok());
    double best = chosen.value().seconds;
    double cheapest = 1e18;
    for (const Config& config : Configurations(lab, layout, Collective::kAllReduce)) {
      const Result<SimCost> cost = Estimate(lab, layout, Collective::kAllReduce, bytes, config);
      ASSERT_TRUE(cost.ok()) << cost.status().message();
      best = std::min(best, cost.value().seconds);
      cheapest = std::min(cheapest, FormulaMicros(lab, layout, Collective::kAllReduce, bytes,
                                                  config.algorithm, config.protocol));
    }
    const Config& config = chosen.value().config;
    EXPECT_EQ(FormulaMicros(lab, layout, Collective::kAllReduce, bytes, config.algorithm,
                            config.protocol),
              cheapest);
    if (chosen.value().seconds > best * 1.05) ++wrong;
  }
  EXPECT_GE(wrong, 4);
}

// Measured there: NCCL's choice and its time, and the best configuration found.
TEST(Estimate, TheLabIsAsItWasMeasured) {
  const Cluster lab = Shipped("lab");
  struct Row {
    uint64_t bytes;
    Config chosen;
    double chosen_us;
    Config best;
    double best_us;
  };
  const Row rows[] = {
      {1 << 10, {kTree, kLl, 1}, 71, {kTree, kLl, 1}, 71},
      {8 << 10, {kRing, kLl, 1}, 124, {kTree, kLl, 1}, 96},
      {32 << 10, {kRing, kLl, 2}, 201, {kTree, kSimple, 1}, 140},
      {128 << 10, {kRing, kSimple, 2}, 383, {kTree, kSimple, 2}, 215},
      {512 << 10, {kRing, kSimple, 2}, 594, {kRing, kSimple, 1}, 481},
      {2 << 20, {kRing, kSimple, 2}, 1358, {kRing, kSimple, 1}, 1238},
      {8 << 20, {kRing, kSimple, 2}, 4073, {kRing, kSimple, 2}, 4073},
  };
  for (const Row& row : rows) {
    const Result<SimCost> own = Estimate(lab, 4, Collective::kAllReduce, row.bytes, {});
    ASSERT_TRUE(own.ok());
    EXPECT_EQ(own.value().config, row.chosen) << row.bytes;
    EXPECT_NEAR(own.value().seconds * 1e6 / row.chosen_us, 1, 0.12) << row.bytes;
    const Result<SimCost> best = Estimate(lab, 4, Collective::kAllReduce, row.bytes, row.best);
    ASSERT_TRUE(best.ok());
    EXPECT_NEAR(best.value().seconds * 1e6 / row.best_us, 1, 0.12) << row.bytes;
  }
}

TEST(Estimate, RefusesWhatIsNotOnOffer) {
  const Cluster lab = Shipped("lab");
  const auto why = [&](Collective collective, const Config& config) {
    const Result<SimCost> cost = Estimate(lab, 4, collective, 1024, config);
    EXPECT_FALSE(cost.ok());
    return cost.status().message();
  };
  EXPECT_EQ(why(Collective::kAllReduce, {kRing, kLl128}),
            "ring/ll128 is not on offer: the simulated cluster 'lab' does not have it");
  EXPECT_EQ(why(Collective::kBroadcast, {kTree, kLl}),
            "tree/ll is not on offer: NCCL never runs it for broadcast");
  EXPECT_EQ(why(Collective::kAllToAll, {kRing, kSimple}),
            "alltoall is made of sends and receives: NCCL has nothing to choose there");
  EXPECT_EQ(why(Collective::kAllReduce, {kRing, kSimple, 65}), "65 channels; NCCL takes 1 to 64");
  EXPECT_EQ(why(Collective::kAllReduce, {kRing, kSimple, -1}), "-1 channels; NCCL takes 1 to 64");
  EXPECT_EQ(why(Collective::kAllReduce, {7, kSimple}), "NCCL has no algorithm number 7");
  EXPECT_EQ(why(Collective::kAllReduce, {-2, kSimple}), "NCCL has no algorithm number -2");
  EXPECT_EQ(why(Collective::kAllReduce, {kRing, 3}), "NCCL has no protocol number 3");
  EXPECT_EQ(why(Collective::kAllReduce, {kKeep, kKeep, 0, 4096}), "NCCL has no segment size");
  EXPECT_EQ(why(Collective::kAllReduce, {kKeep, kLl128}),
            "the simulated cluster 'lab' has nothing for allreduce that is any/ll128");
  const Cluster node = Shipped("h100x8");
  EXPECT_TRUE(Estimate(node, 8, Collective::kAllReduce, 1 << 20, {kNvls, kSimple}).ok());
  EXPECT_FALSE(
      Estimate(Shipped("h100x8x4"), 16, Collective::kAllReduce, 1 << 20, {kNvls, kSimple}).ok());
  EXPECT_FALSE(Estimate(lab, 9, Collective::kAllReduce, 1024, {}).ok());
  EXPECT_FALSE(Estimate(lab, 0, Collective::kAllReduce, 1024, {}).ok());
}

TEST(Estimate, EverySizeHasAFiniteCost) {
  for (const std::string& name : ClusterNames()) {
    const Cluster cluster = Shipped(name);
    for (int ranks = 1; ranks <= cluster.ranks(); ranks = ranks * 3 + 1) {
      for (int c = 0; c < kCollectiveCount; ++c) {
        double before = 0;
        for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{64}, uint64_t{1} << 20,
                                     uint64_t{1} << 40, UINT64_MAX}) {
          const Collective collective = static_cast<Collective>(c);
          const Result<SimCost> cost = Estimate(cluster, ranks, collective, bytes, {});
          ASSERT_TRUE(cost.ok()) << name << " " << ranks << ": " << cost.status().message();
          EXPECT_TRUE(std::isfinite(cost.value().seconds));
          EXPECT_GT(cost.value().seconds, 0);
          if (bytes >= (uint64_t{1} << 20)) {
            EXPECT_GT(cost.value().seconds, before);
          }
          before = cost.value().seconds;
        }
      }
    }
  }
}

TEST(Channels, AreAnUpperBoundThatSmallMessagesDoNotReach) {
  const Cluster lab = Shipped("lab");
  const Cluster h100 = Shipped("h100x8");
  const auto used = [](const Cluster& cluster, uint64_t bytes, int protocol, int asked) {
    const Config config{kRing, protocol, asked};
    return Estimate(cluster, 4, Collective::kAllReduce, bytes, config).value().config.channels;
  };
  EXPECT_EQ(used(lab, 1 << 20, kSimple, 4), 2);     // asking 4 gave 2 there
  EXPECT_EQ(used(h100, 64 << 10, kSimple, 24), 4);  // 32 KiB of traffic a channel
  EXPECT_EQ(used(h100, 64 << 10, kLl, 24), 16);     // LL counts four times
  EXPECT_EQ(used(h100, 1 << 30, kSimple, 24), 24);
  EXPECT_EQ(used(h100, 0, kSimple, 24), 1);
  const Cluster mi355x = Shipped("mi355x8");
  EXPECT_EQ(used(mi355x, 4096, kSimple, 48), 48);
}

}  // namespace
}  // namespace diapason::comm::sim
