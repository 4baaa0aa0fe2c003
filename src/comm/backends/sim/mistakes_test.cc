// Errors are reported on every rank, and soon.
#include <gtest/gtest.h>

#include "comm/backends/sim/testing.h"
#include "domain/vocabulary.h"

namespace diapason::comm::sim {
namespace {

TEST(Mistakes, DifferentCallsAreNamedOnBothSides) {
  OnRanks({}, 2, [](int rank, Communicator* comm) {
    std::vector<float> data(1 << 18);
    const Call call = rank == 0
                          ? AllReduceCall(data.data(), data.data(), data.size(), DataType::kF32)
                          : BroadcastCall(data.data(), data.data(), 1024, DataType::kF32, 0);
    const Status status = comm->Run(call, In(kLong));
    EXPECT_EQ(Message(status),
              "rank 1 calls broadcast of 4KiB f32 from rank 0 where rank 0 calls all_reduce of "
              "1MiB f32 (sum)");
    // The world is broken: the same error for what follows.
    EXPECT_EQ(Message(comm->Run(BarrierCall(), In(kLong))), Message(status));
  });
}

TEST(Mistakes, DifferentConfigurationsAreAnErrorToo) {
  OnRanks({}, 2, [](int rank, Communicator* comm) {
    float one = 1;
    Call call = AllReduceCall(&one, &one, 1, DataType::kF32);
    if (rank == 1) call.config = {kTree, kLl};
    const Status status = comm->Run(call, In(kLong));
    EXPECT_NE(Message(status).find("with tree/ll where rank 0"), std::string::npos)
        << Message(status);
  });
}

TEST(Mistakes, ASendAndAReceiveThatDiffer) {
  OnRanks({}, 2, [](int rank, Communicator* comm) {
    std::vector<double> data(4);
    const Call call = rank == 0 ? SendCall(data.data(), 4, DataType::kF64, 1)
                                : RecvCall(data.data(), 3, DataType::kF64, 0);
    EXPECT_EQ(Message(comm->Run(call, In(kLong))),
              "rank 1 calls recv of 24 f64 from rank 0 where rank 0 calls send of 32 f64 to rank "
              "1");
  });
}

TEST(Mistakes, TheTimeOutNamesWhoHasNotCome) {
  std::vector<std::unique_ptr<Communicator>> comms(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back(
        [&, rank] { comms[static_cast<size_t>(rank)] = std::move(Join({}, rank, 3)).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  float one = 1;
  const Status status = comms[0]->Run(AllReduceCall(&one, &one, 1, DataType::kF32), In(kShort));
  EXPECT_EQ(status.code(), ErrorCode::kTimeout);
  EXPECT_EQ(status.message(), "ranks 1 and 2 have not called all_reduce of 4 f32 (sum)");
  const Status later = comms[1]->Run(BarrierCall(), In(kLong));
  EXPECT_EQ(later.message(), status.message());
}

TEST(Mistakes, AReceiveWithoutASend) {
  OnRanks({}, 2, [](int rank, Communicator* comm) {
    if (rank == 1) return;
    float one = 1;
    auto pending = comm->Start(RecvCall(&one, 1, DataType::kF32, 1), In(kShort));
    ASSERT_TRUE(pending.ok());
    EXPECT_FALSE(pending.value()->Done());
    EXPECT_EQ(Message(pending.value()->Wait(In(kShort))),
              "rank 1 has not answered the recv of 4 f32 from rank 1");
  });
}

TEST(Mistakes, ARankThatLeavesIsNamed) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([rank] {
      std::unique_ptr<Communicator> comm = std::move(Join({}, rank, 3)).value();
      if (rank == 2) return;
      float one = 1;
      const Status status = comm->Run(AllReduceCall(&one, &one, 1, DataType::kF32), In(kLong));
      EXPECT_EQ(status.code(), ErrorCode::kPeerLost);
      EXPECT_NE(status.message().find("rank 2 has left"), std::string::npos) << status.message();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Mistakes, InterruptWakesEverybody) {
  OnRanks({}, 3, [](int rank, Communicator* comm) {
    float one = 1;
    if (rank == 2) {
      comm->Interrupt("the watchdog says so");
      return;
    }
    const Status status = comm->Run(AllReduceCall(&one, &one, 1, DataType::kF32), In(kLong));
    EXPECT_EQ(Message(status), "the watchdog says so");
  });
}

TEST(Meeting, ARankAloneLearnsThatRanksAreThreads) {
  Wanted wanted;
  wanted.timeout = kShort;
  const Status status = Join(wanted, 1, 4).status();
  EXPECT_EQ(status.code(), ErrorCode::kTimeout);
  EXPECT_NE(status.message().find("ranks 0, 2 and 3 have not come"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("threads of one process"), std::string::npos);
  // A failed world is forgotten.
  OnRanks({}, 4, [](int, Communicator*) {});
}

TEST(Meeting, RanksMustAgree) {
  // The second one differs; both get the error.
  const auto both = [](const Wanted& one, int rank_one, int size_one, const Wanted& two,
                       int rank_two, int size_two) {
    Status first;
    std::thread other([&] { first = Join(one, rank_one, size_one).status(); });
    Status second = Join(two, rank_two, size_two).status();
    other.join();
    EXPECT_FALSE(first.ok());
    EXPECT_EQ(first.message(), second.message());
    return second.message();
  };
  Wanted wanted;
  EXPECT_NE(both(wanted, 0, 2, wanted, 1, 3).find("ranks where rank"), std::string::npos);
  Wanted other = wanted;
  other.seed = 9;
  EXPECT_NE(both(wanted, 0, 2, other, 1, 2).find("seed"), std::string::npos);
  other = wanted;
  other.cluster = "a100x8";
  EXPECT_NE(both(wanted, 0, 2, other, 1, 2).find("'a100x8'"), std::string::npos);
  EXPECT_NE(both(wanted, 1, 3, wanted, 1, 3).find("rank 1 comes twice"), std::string::npos);
}

TEST(Meeting, RefusesWhatTheClusterDoesNotHave) {
  EXPECT_NE(Join({}, 0, 9).status().message().find("'h100x8' has 1 to 8"), std::string::npos);
  Wanted wanted;
  wanted.cluster = "";
  EXPECT_NE(Join(wanted, 0, 1).status().message().find("DIAPASON_CLUSTER"), std::string::npos);
  wanted.cluster = "h100x";
  EXPECT_NE(Join(wanted, 0, 1).status().message().find("did you mean"), std::string::npos);
}

TEST(Meeting, SeveralWorldsAtOnce) {
  std::vector<std::thread> worlds;
  for (int port = 1; port <= 4; ++port) {
    worlds.emplace_back([port] {
      Wanted wanted;
      wanted.port = port;
      OnRanks(wanted, 3, [port](int /*rank*/, Communicator* comm) {
        int32_t value = port;
        ASSERT_TRUE(comm->Run(AllReduceCall(&value, &value, 1, DataType::kI32), In(kLong)).ok());
        EXPECT_EQ(value, 3 * port);
      });
    });
  }
  for (std::thread& world : worlds) world.join();
}

}  // namespace
}  // namespace diapason::comm::sim
