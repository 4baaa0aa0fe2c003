// The backend as its users see it: ranks as threads, through Backend::Create.
#include "comm/backends/sim/world.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/text.h"
#include "comm/backends/sim/testing.h"

namespace diapason::comm::sim {
namespace {

// A description in a file that lives as long as this.
class ClusterFile {
 public:
  explicit ClusterFile(const std::string& from, const std::string& more)
      : path_((std::filesystem::path(testing::TempDir()) /
               Format("cluster_{}_{}.toml", getpid(), static_cast<const void*>(this)))
                  .string()) {
    std::ofstream(path_) << ShippedText(from).value() << "\n" << more;
  }
  ~ClusterFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(SimBackend, SaysThatItIsSimulated) {
  const BackendInfo info = FindBackend("sim").value()->Look({});
  EXPECT_TRUE(info.usable);
  EXPECT_EQ(info.name, "sim");
  EXPECT_NE(info.devices.find("simulated"), std::string::npos);
  EXPECT_NE(info.devices.find("h100x8"), std::string::npos);
}

TEST(SimBackend, DataReallyMoves) {
  constexpr int kRanks = 4;
  OnRanks({}, kRanks, [](int rank, Communicator* comm) {
    std::vector<float> in(8);
    std::iota(in.begin(), in.end(), static_cast<float>(rank * 100));
    std::vector<float> out(32, -1);
    const auto run = [&](const Call& call) {
      const Status status = comm->Run(call, In(kLong));
      EXPECT_TRUE(status.ok()) << status.message();
    };
    run(AllReduceCall(in.data(), out.data(), 8, DataType::kF32));
    EXPECT_EQ(out[1], 600 + 4);
    run(AllReduceCall(in.data(), out.data(), 8, DataType::kF32, ReduceOp::kAvg));
    EXPECT_EQ(out[1], 151);
    run(BroadcastCall(in.data(), out.data(), 8, DataType::kF32, 2));
    EXPECT_EQ(out[7], 207);
    out.assign(32, -1);
    run(ReduceCall(in.data(), out.data(), 8, DataType::kF32, ReduceOp::kMax, 1));
    EXPECT_EQ(out[3], rank == 1 ? 303 : -1);
    run(AllGatherCall(in.data(), out.data(), 8, DataType::kF32));
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(out[static_cast<size_t>(8 * r + 5)], r * 100 + 5);
    run(ReduceScatterCall(in.data(), out.data(), 2, DataType::kF32));
    EXPECT_EQ(out[0], 600 + 4 * 2 * rank);
    run(AllToAllCall(in.data(), out.data(), 2, DataType::kF32));
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(out[static_cast<size_t>(2 * r)], r * 100 + 2 * rank);
    // In place.
    std::vector<float> both(in);
    run(AllReduceCall(both.data(), both.data(), 8, DataType::kF32));
    EXPECT_EQ(both[2], 608);
    both = in;
    run(ReduceScatterCall(both.data(), both.data() + 2 * rank, 2, DataType::kF32));
    EXPECT_EQ(both[static_cast<size_t>(2 * rank)], 600 + 4 * 2 * rank);
    out.assign(32, -1);
    out[static_cast<size_t>(rank)] = static_cast<float>(rank);
    run(AllGatherCall(out.data() + rank, out.data(), 1, DataType::kF32));
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(out[static_cast<size_t>(r)], r);
    run(BarrierCall());
  });
}

TEST(SimBackend, OneRankAlone) {
  OnRanks({}, 1, [](int /*rank*/, Communicator* comm) {
    int32_t in = 7;
    int32_t out = 0;
    EXPECT_TRUE(comm->Run(AllReduceCall(&in, &out, 1, DataType::kI32), In(kLong)).ok());
    EXPECT_EQ(out, 7);
    EXPECT_GT(comm->Now(), 0);
  });
}

TEST(SimBackend, SendsMeetTheirReceivesInOrder) {
  OnRanks({}, 3, [](int rank, Communicator* comm) {
    std::vector<int32_t> got(2, -1);
    if (rank == 0) {
      const int32_t values[2] = {10, 20};
      auto first = comm->Start(SendCall(&values[0], 1, DataType::kI32, 2), In(kLong));
      auto second = comm->Start(SendCall(&values[1], 1, DataType::kI32, 2), In(kLong));
      ASSERT_TRUE(first.ok() && second.ok());
      EXPECT_TRUE(first.value()->Wait(In(kLong)).ok());
      EXPECT_TRUE(second.value()->Wait(In(kLong)).ok());
      EXPECT_GT(second.value()->Seconds(), 0);
    } else if (rank == 2) {
      EXPECT_TRUE(comm->Run(RecvCall(&got[0], 1, DataType::kI32, 0), In(kLong)).ok());
      EXPECT_TRUE(comm->Run(RecvCall(&got[1], 1, DataType::kI32, 0), In(kLong)).ok());
      EXPECT_EQ(got[0], 10);
      EXPECT_EQ(got[1], 20);
    }
  });
}

// Times of `calls` mixed calls on every rank, with compute beside them.
std::vector<double> Times(const Wanted& wanted, int size, bool hurry) {
  std::vector<double> times(static_cast<size_t>(size) * 3);
  OnRanks(wanted, size, [&](int rank, Communicator* comm) {
    std::vector<float> data(4096, 1);
    for (int i = 0; i < 20; ++i) {
      // Ranks come at different virtual times, and in different real orders.
      ASSERT_TRUE(comm->SimulateCompute(1e-6 * ((rank * 7 + i) % 5)).ok());
      if (hurry && (rank + i) % 2 == 0) std::this_thread::yield();
      auto first = comm->Start(
          AllReduceCall(data.data(), data.data(), 4096, DataType::kF32, ReduceOp::kMax), In(kLong));
      auto second =
          comm->Start(BroadcastCall(data.data(), data.data(), 64, DataType::kF32, 0), In(kLong));
      ASSERT_TRUE(first.ok() && second.ok());
      ASSERT_TRUE(comm->SimulateCompute(1e-5).ok());
      ASSERT_TRUE(second.value()->Wait(In(kLong)).ok());
      ASSERT_TRUE(first.value()->Wait(In(kLong)).ok());
      if (i == 10) times[static_cast<size_t>(rank) * 3] = comm->Now();
      times[static_cast<size_t>(rank) * 3 + 1] = first.value()->Seconds();
    }
    times[static_cast<size_t>(rank) * 3 + 2] = comm->Now();
  });
  return times;
}

TEST(VirtualTime, DependsOnTheSeedAndOnNothingElse) {
  Wanted wanted;
  wanted.cluster = "h100x8x4";
  const std::vector<double> once = Times(wanted, 16, false);
  wanted.port = 77;
  EXPECT_EQ(once, Times(wanted, 16, true));
  wanted.seed = 2;
  EXPECT_NE(once, Times(wanted, 16, false));
}

TEST(VirtualTime, ACallBeginsWhenTheLastRankComes) {
  Wanted wanted;
  wanted.cluster = "lab";
  OnRanks(wanted, 4, [](int rank, Communicator* comm) {
    float one = 1;
    ASSERT_TRUE(comm->SimulateCompute(rank == 3 ? 5.0 : 0.0).ok());
    ASSERT_TRUE(comm->Run(AllReduceCall(&one, &one, 1, DataType::kF32), In(kLong)).ok());
    EXPECT_GT(comm->Now(), 5.0);
    EXPECT_LT(comm->Now(), 5.01);
  });
}

TEST(VirtualTime, ComputeBesideACollectiveTakesLonger) {
  const ClusterFile file("h100x8", "");
  std::string text(ShippedText("h100x8").value());
  // Without noise, so that it can be computed.
  text.replace(text.find("sigma = 0.02"), 12, "sigma = 0.00");
  text.replace(text.find("rank_sigma = 0.005"), 18, "rank_sigma = 0.000");
  text.replace(text.find("spike_share = 0.002"), 19, "spike_share = 0.000");
  std::ofstream(file.path()) << text;
  Wanted wanted;
  wanted.cluster = file.path();
  const Cluster cluster = LoadCluster(file.path()).value();
  const size_t count = size_t{1} << 18;
  const SimCost cost =
      Estimate(cluster, 8, Collective::kAllReduce, count * 4, {kRing, kSimple, 16}).value();
  ASSERT_EQ(cost.config.channels, 16);
  const double beside = cost.seconds * (1 + cluster.compute.collective_slowdown);
  const double share = 16.0 / 132;
  OnRanks(wanted, 8, [&](int /*rank*/, Communicator* comm) {
    std::vector<float> data(count);
    Call call = AllReduceCall(data.data(), data.data(), count, DataType::kF32);
    call.config = {kRing, kSimple, 16};
    auto pending = comm->Start(call, In(kLong));
    ASSERT_TRUE(pending.ok());
    ASSERT_TRUE(comm->SimulateCompute(1.0).ok());
    EXPECT_NEAR(comm->Now(), 1 + beside * share, 1e-12);
    ASSERT_TRUE(pending.value()->Wait(In(kLong)).ok());
    EXPECT_NEAR(comm->Now(), 1 + beside * share, 1e-12);
    EXPECT_NEAR(pending.value()->Seconds(), beside, 1e-12);
  });
}

TEST(VirtualTime, AStragglerHoldsEverybodyUp) {
  const ClusterFile file("h100x8", "[[straggler]]\nranks = [3]\nfactor = 10\n");
  const auto last = [](const std::string& cluster, int size) {
    double latest = 0;
    Wanted wanted;
    wanted.cluster = cluster;
    OnRanks(wanted, size, [&](int rank, Communicator* comm) {
      std::vector<float> data(1 << 16);
      for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(comm->Run(AllReduceCall(data.data(), data.data(), data.size(), DataType::kF32),
                              In(kLong))
                        .ok());
      }
      if (rank == 0) latest = comm->Now();
    });
    return latest;
  };
  EXPECT_NEAR(last(file.path(), 8) / last("h100x8", 8), 10, 1e-6);
  // Rank 3 is not among the first three.
  EXPECT_EQ(last(file.path(), 3), last("h100x8", 3));
}

TEST(VirtualTime, ConfigurationsDiffer) {
  Wanted wanted;
  wanted.cluster = "lab";
  OnRanks(wanted, 4, [](int /*rank*/, Communicator* comm) {
    std::vector<float> data(1 << 21);
    Call call = AllReduceCall(data.data(), data.data(), data.size(), DataType::kF32);
    ASSERT_TRUE(comm->Run(call, In(kLong)).ok());
    const double own = comm->Now();
    call.config = {kTree, kLl};
    ASSERT_TRUE(comm->CanRun(call).ok());
    ASSERT_TRUE(comm->Run(call, In(kLong)).ok());
    EXPECT_GT(comm->Now() - own, 3 * own);
    call.config = {kTree, kLl128};
    EXPECT_EQ(comm->CanRun(call).message(),
              "tree/ll128 is not on offer: the simulated cluster 'lab' does not have it");
  });
}

TEST(SimBackend, SplitKeepsPlacesAndClocks) {
  Wanted wanted;
  wanted.cluster = "h100x8x4";
  OnRanks(wanted, 32, [](int rank, Communicator* comm) {
    ASSERT_TRUE(comm->SimulateCompute(1.0).ok());
    // One rank of each node, backwards; the last node's stay outside.
    std::vector<int> members;
    if (rank < 24) members = {16 + rank % 8, 8 + rank % 8, rank % 8};
    Result<std::unique_ptr<Communicator>> split =
        comm->Split(members, Format("world/{}", rank % 8), In(kLong));
    ASSERT_TRUE(split.ok()) << split.status().message();
    if (rank >= 24) {
      EXPECT_EQ(split.value(), nullptr);
      return;
    }
    Communicator* child = split.value().get();
    EXPECT_GT(child->Now(), 1.0);
    EXPECT_EQ(child->LinkPeak(), 50e9);
    EXPECT_EQ(comm->Nodes(), 4);
    EXPECT_EQ(comm->LocalRank(), rank % 8);
    EXPECT_EQ(child->Nodes(), 3);
    EXPECT_EQ(child->LocalRank(), 0);
    int32_t mine = rank;
    std::vector<int32_t> all(3);
    // PAT needs one rank on each node: these are.
    Call call = AllGatherCall(&mine, all.data(), 1, DataType::kI32);
    call.config = {kPat, kSimple};
    ASSERT_TRUE(child->CanRun(call).ok());
    EXPECT_FALSE(comm->CanRun(call).ok());
    ASSERT_TRUE(child->Run(call, In(kLong)).ok());
    EXPECT_EQ(all, members);
    EXPECT_EQ(child->Now(), comm->Now());
  });
}

TEST(Scale, AThousandRanks) {
  Wanted wanted;
  wanted.cluster = "h100x8x512";
  OnRanks(wanted, 1000, [](int /*rank*/, Communicator* comm) {
    for (int i = 0; i < 5; ++i) {
      int64_t one = 1;
      ASSERT_TRUE(comm->Run(AllReduceCall(&one, &one, 1, DataType::kI64), In(kLong)).ok());
      ASSERT_EQ(one, 1000);
    }
  });
}

TEST(Asynchronous, OrderIsKeptWithoutWaiting) {
  OnRanks({}, 4, [](int rank, Communicator* comm) {
    int32_t value = rank;
    int32_t sum = 0;
    int32_t twice = 0;
    // The second reads what the first writes.
    auto first = comm->Start(AllReduceCall(&value, &sum, 1, DataType::kI32), In(kLong));
    auto second = comm->Start(AllReduceCall(&sum, &twice, 1, DataType::kI32), In(kLong));
    ASSERT_TRUE(first.ok() && second.ok());
    ASSERT_TRUE(second.value()->Wait(In(kLong)).ok());
    EXPECT_EQ(sum, 6);
    EXPECT_EQ(twice, 24);
    EXPECT_TRUE(first.value()->Done());
    // Started and forgotten, many times.
    std::vector<int32_t> out(300, 0);
    for (int32_t& result : out) {
      ASSERT_TRUE(comm->Start(AllReduceCall(&value, &result, 1, DataType::kI32), In(kLong)).ok());
    }
    ASSERT_TRUE(comm->Run(BarrierCall(), In(kLong)).ok());
    for (const int32_t result : out) EXPECT_EQ(result, 6);
    // A send after a collective sends its result.
    int32_t got = 0;
    auto third = comm->Start(AllReduceCall(&value, &sum, 1, DataType::kI32), In(kLong));
    if (rank == 0) {
      ASSERT_TRUE(comm->Run(SendCall(&sum, 1, DataType::kI32, 1), In(kLong)).ok());
    } else if (rank == 1) {
      ASSERT_TRUE(comm->Run(RecvCall(&got, 1, DataType::kI32, 0), In(kLong)).ok());
      EXPECT_EQ(got, 6);
    }
    ASSERT_TRUE(third.value()->Wait(In(kLong)).ok());
  });
}

}  // namespace
}  // namespace diapason::comm::sim
