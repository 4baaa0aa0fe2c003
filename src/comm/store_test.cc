#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "base/version.h"
#include "comm/tcp_store.h"

namespace diapason::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

Deadline In(milliseconds time) { return steady_clock::now() + time; }

// A port nobody listens on now.
int FreePort() {
  for (int port = 21000 + static_cast<int>(getpid() % 1000); port < 29000; port += 7) {
    if (ListenOn("localhost", port).ok()) return port;
  }
  return 0;
}

StoreAddress Address() {
  StoreAddress address;
  address.port = FreePort();
  return address;
}

// Runs `rank` on a thread per rank, each with its connection to one store.
void WithRanks(int size, const std::function<void(int, TcpStore*)>& rank) {
  const StoreAddress address = Address();
  std::vector<std::thread> threads;
  for (int i = 0; i < size; ++i) {
    threads.emplace_back([&, i] {
      Result<std::unique_ptr<TcpStore>> store = TcpStore::Join(address, i, size, In(seconds(20)));
      ASSERT_TRUE(store.ok()) << store.status().message();
      rank(i, store.value().get());
      // Rank 0 keeps the store: it leaves last.
      std::vector<int> all;
      for (int r = 0; r < size; ++r) all.push_back(r);
      EXPECT_TRUE(store.value()->Collect("end", all, "", false, In(seconds(20))).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Store, EverybodyGetsEverybodysValue) {
  WithRanks(5, [](int rank, TcpStore* store) {
    const Result<std::vector<std::string>> all =
        store->Gather("key", {4, 3, 2, 1, 0}, "value " + std::to_string(rank), In(seconds(20)));
    ASSERT_TRUE(all.ok()) << all.status().message();
    EXPECT_EQ(all.value()[0], "value 4");
    EXPECT_EQ(all.value()[4], "value 0");
  });
}

TEST(Store, AValueCanBeWaitedFor) {
  WithRanks(2, [](int rank, TcpStore* store) {
    if (rank == 0) {
      std::this_thread::sleep_for(milliseconds(20));
      EXPECT_TRUE(store->Set("late", std::string(100000, 'x')).ok());
    } else {
      const Result<std::string> value = store->Get("late", In(seconds(20)));
      ASSERT_TRUE(value.ok());
      EXPECT_EQ(value.value().size(), 100000U);
      const Result<std::string> nothing = store->Get("never", In(milliseconds(50)));
      ASSERT_FALSE(nothing.ok());
      EXPECT_EQ(nothing.status().code(), ErrorCode::kTimeout);
    }
  });
}

TEST(Store, WhoDoesNotAnswerIsNamed) {
  WithRanks(3, [](int rank, TcpStore* store) {
    if (rank == 2) return;
    const Result<std::vector<std::string>> all =
        store->Gather("key", {0, 1, 2}, "", In(milliseconds(300)));
    ASSERT_FALSE(all.ok());
    EXPECT_EQ(all.status().code(), ErrorCode::kTimeout);
    EXPECT_NE(all.status().message().find("rank 2 (host"), std::string::npos);
    EXPECT_NE(all.status().message().find("has not arrived"), std::string::npos);
    EXPECT_EQ(all.status().message().find("rank 1"), std::string::npos);
  });
}

TEST(Store, ALostRankIsToldAtOnceAndByName) {
  const StoreAddress address = Address();
  Result<std::unique_ptr<TcpStore>> zero = Unavailable("not joined");
  std::thread joining([&] { zero = TcpStore::Join(address, 0, 2, In(seconds(20))); });
  // Rank 1 says hello and vanishes without a goodbye.
  Result<Socket> socket = Unavailable("not connected");
  while (!socket.ok()) socket = ConnectTo("localhost", address.port, In(seconds(20)));
  const std::string hello = std::string(kFrameMagic) + FrameWriter(FrameKind::kHello)
                                                           .Text(kVersion)
                                                           .Text("")
                                                           .Number(1)
                                                           .Number(2)
                                                           .Text("elsewhere")
                                                           .Number(99)
                                                           .Take();
  ASSERT_TRUE(SendAll(socket.value(), hello, In(seconds(20))).ok());
  std::string answer;
  while (answer.size() < kFrameMagic.size() + 5) {
    ASSERT_TRUE(ReceiveSome(socket.value(), &answer, In(seconds(20))).ok());
  }
  joining.join();
  ASSERT_TRUE(zero.ok()) << zero.status().message();
  socket.value().Close();
  const Result<std::vector<std::string>> all =
      zero.value()->Gather("key", {0, 1}, "", In(seconds(20)));
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.status().code(), ErrorCode::kPeerLost);
  EXPECT_EQ(all.status().message(), "rank 1 (host elsewhere, process 99) has ended");
  EXPECT_EQ(zero.value()->Lost(), std::vector<int>{1});
}

TEST(Store, GivingUpReachesTheOthersOfThatGroupOnly) {
  WithRanks(2, [](int rank, TcpStore* store) {
    // Who is not there yet cannot be told.
    ASSERT_TRUE(store->Gather("both", {0, 1}, "", In(seconds(20))).ok());
    if (rank == 0) {
      store->GiveUp("world");
      return;
    }
    const Deadline limit = In(seconds(20));
    while (store->Lost("world").empty() && steady_clock::now() < limit) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(store->Lost("world"), std::vector<int>{0});
    EXPECT_TRUE(store->Lost("another").empty());
    EXPECT_TRUE(store->Lost().empty());
  });
}

TEST(Store, ADoubledRankIsNamedToEverybody) {
  const StoreAddress address = Address();
  std::vector<std::string> messages(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      // Ranks 0, 1 and 1 of three.
      const Result<std::unique_ptr<TcpStore>> store =
          TcpStore::Join(address, std::min(i, 1), 3, In(seconds(20)));
      if (!store.ok()) {
        messages[static_cast<size_t>(i)] = store.status().message();
        return;
      }
      messages[static_cast<size_t>(i)] =
          store.value()->Gather("key", {0, 1, 2}, "", In(seconds(20))).status().message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(messages[0].find("rank 1 was started twice"), std::string::npos) << messages[0];
  EXPECT_TRUE(messages[1].find("rank 1 was started twice") != std::string::npos ||
              messages[2].find("rank 1 was started twice") != std::string::npos);
}

TEST(Store, AWrongSizeIsNamed) {
  const StoreAddress address = Address();
  std::string message;
  std::thread zero([&] {
    const Result<std::unique_ptr<TcpStore>> store = TcpStore::Join(address, 0, 2, In(seconds(20)));
    ASSERT_TRUE(store.ok());
    const Result<std::vector<std::string>> all =
        store.value()->Gather("key", {0, 1}, "", In(seconds(20)));
    EXPECT_NE(all.status().message().find("was started for 3 ranks"), std::string::npos);
  });
  const Result<std::unique_ptr<TcpStore>> other = TcpStore::Join(address, 1, 3, In(seconds(20)));
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("started for 3 ranks and rank 0 for 2"),
            std::string::npos);
  zero.join();
}

TEST(Store, StrangersDisturbNobody) {
  const StoreAddress address = Address();
  std::thread zero([&] {
    const Result<std::unique_ptr<TcpStore>> store = TcpStore::Join(address, 0, 2, In(seconds(20)));
    ASSERT_TRUE(store.ok());
    EXPECT_TRUE(store.value()->Gather("key", {0, 1}, "", In(seconds(20))).ok());
  });
  for (const std::string& rubbish :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(5000, '\xff'),
        std::string(kFrameMagic) + std::string("\xff\xff\xff\xff\x01", 5),
        std::string(kFrameMagic) + std::string("\x00\x00\x00\x00\x02", 5), std::string()}) {
    Result<Socket> socket = Unavailable("not connected");
    while (!socket.ok()) socket = ConnectTo("localhost", address.port, In(seconds(20)));
    const Status sent = SendAll(socket.value(), rubbish, In(seconds(20)));
    static_cast<void>(sent);
  }
  const Result<std::unique_ptr<TcpStore>> one = TcpStore::Join(address, 1, 2, In(seconds(20)));
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_TRUE(one.value()->Gather("key", {0, 1}, "", In(seconds(20))).ok());
  zero.join();
}

TEST(Store, AMissingRankZeroIsNamed) {
  StoreAddress address = Address();
  const Result<std::unique_ptr<TcpStore>> store =
      TcpStore::Join(address, 1, 2, In(milliseconds(200)));
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), ErrorCode::kTimeout);
  EXPECT_NE(store.status().message().find("rank 0 has not arrived"), std::string::npos);
}

TEST(Store, ATakenPortIsSaid) {
  StoreAddress address = Address();
  const Result<Socket> taken = ListenOn("localhost", address.port);
  ASSERT_TRUE(taken.ok());
  const Result<std::unique_ptr<TcpStore>> store = TcpStore::Join(address, 0, 2, In(seconds(20)));
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.status().message().find("set MASTER_PORT to a free port"), std::string::npos);
  // With several ports to choose from, the next one is taken.
  address.ports = 8;
  EXPECT_TRUE(TcpStore::Join(address, 0, 1, In(seconds(20))).ok());
}

TEST(Frame, ADamagedFrameIsNoFrame) {
  std::string body;
  FrameKind kind{};
  bool damaged = false;
  std::string buffer = "\xff\xff\xff\x7f\x01";
  EXPECT_FALSE(TakeFrame(&buffer, &kind, &body, &damaged));
  EXPECT_TRUE(damaged);
  buffer = FrameWriter(FrameKind::kSet).Text("a").Number(7).Take();
  const std::string whole = buffer;
  for (size_t length = 0; length < whole.size(); ++length) {
    std::string part = whole.substr(0, length);
    EXPECT_FALSE(TakeFrame(&part, &kind, &body, &damaged));
    EXPECT_FALSE(damaged);
  }
  ASSERT_TRUE(TakeFrame(&buffer, &kind, &body, &damaged));
  FrameReader reader(body);
  EXPECT_EQ(reader.Text(), "a");
  EXPECT_EQ(reader.Number(), 7U);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.Number(), 0U);
  EXPECT_FALSE(reader.ok());
  const std::string countless = FrameWriter(FrameKind::kSet).Number(UINT64_MAX).Take().substr(5);
  FrameReader many(countless);
  EXPECT_TRUE(many.Ranks(10).empty());
  EXPECT_FALSE(many.ok());
}

}  // namespace
}  // namespace diapason::comm
