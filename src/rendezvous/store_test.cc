#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <thread>

#include "rendezvous/frame_link.h"
#include "rendezvous/store_visitor.h"

namespace diapason::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

Deadline In(milliseconds time) { return steady_clock::now() + time; }

StoreAddress Address() {
  StoreAddress address;
  address.port = PortForTest();
  return address;
}

// Runs `rank` on a thread per rank, each with its connection to one store.
void WithRanks(int size, const std::function<void(int, TcpStore*)>& rank) {
  const StoreAddress address = Address();
  std::vector<std::thread> threads;
  for (int i = 0; i < size; ++i) {
    threads.emplace_back([&, i] {
      Result<std::unique_ptr<TcpStore>> store = TcpStore::Join(address, i, size, In(seconds(120)));
      ASSERT_TRUE(store.ok()) << store.status().message();
      rank(i, store.value().get());
      // Rank 0 keeps the store: it leaves last.
      std::vector<int> all;
      for (int r = 0; r < size; ++r) all.push_back(r);
      EXPECT_TRUE(store.value()->Collect("end", all, "", false, In(seconds(120))).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RendezvousStore, EverybodyGetsEverybodysValue) {
  WithRanks(5, [](int rank, TcpStore* store) {
    const Result<std::vector<std::string>> all =
        store->Gather("key", {4, 3, 2, 1, 0}, "value " + std::to_string(rank), In(seconds(120)));
    ASSERT_TRUE(all.ok()) << all.status().message();
    EXPECT_EQ(all.value()[0], "value 4");
    EXPECT_EQ(all.value()[4], "value 0");
  });
}

TEST(RendezvousStore, AValueCanBeWaitedFor) {
  WithRanks(2, [](int rank, TcpStore* store) {
    if (rank == 0) {
      std::this_thread::sleep_for(milliseconds(20));
      EXPECT_TRUE(store->Set("late", std::string(100000, 'x')).ok());
    } else {
      const Result<std::string> value = store->Get("late", In(seconds(120)));
      ASSERT_TRUE(value.ok());
      EXPECT_EQ(value.value().size(), 100000U);
      const Result<std::string> nothing = store->Get("never", In(milliseconds(50)));
      ASSERT_FALSE(nothing.ok());
      EXPECT_EQ(nothing.status().code(), ErrorCode::kTimeout);
    }
  });
}

TEST(RendezvousStore, WhoDoesNotAnswerIsNamed) {
  WithRanks(3, [](int rank, TcpStore* store) {
    if (rank == 2) return;
    // The two come together, so that neither waits in vain for the other.
    ASSERT_TRUE(store->Gather("both", {0, 1}, "", In(seconds(120))).ok());
    const Result<std::vector<std::string>> all =
        store->Gather("key", {0, 1, 2}, "", In(milliseconds(2000)));
    ASSERT_FALSE(all.ok());
    EXPECT_EQ(all.status().code(), ErrorCode::kTimeout);
    EXPECT_NE(all.status().message().find("rank 2 (host"), std::string::npos);
    EXPECT_NE(all.status().message().find("has not arrived"), std::string::npos);
    EXPECT_EQ(all.status().message().find("rank 1"), std::string::npos);
  });
}

TEST(RendezvousStore, ALostRankIsToldAtOnceAndByName) {
  const StoreAddress address = Address();
  Result<std::unique_ptr<TcpStore>> zero = Unavailable("not joined");
  std::thread joining([&] { zero = TcpStore::Join(address, 0, 2, In(seconds(120))); });
  // Rank 1 says hello and vanishes without a goodbye.
  Visitor visitor(address.port);
  const HandshakeInputs shared = visitor.Challenge("", StoreName(address.host, address.port));
  ASSERT_TRUE(visitor.Say(std::string(kFrameMagic) + EncodeHello(HelloForTest(1, 2), shared)));
  FrameKind kind{};
  std::string body;
  ASSERT_TRUE(visitor.Listen(&kind, &body));
  EXPECT_EQ(kind, FrameKind::kFine);
  joining.join();
  ASSERT_TRUE(zero.ok()) << zero.status().message();
  visitor.Leave();
  const Result<std::vector<std::string>> all =
      zero.value()->Gather("key", {0, 1}, "", In(seconds(120)));
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.status().code(), ErrorCode::kPeerLost);
  EXPECT_EQ(all.status().message(), "rank 1 (host elsewhere, process 99) has ended");
  EXPECT_EQ(zero.value()->Lost(), std::vector<int>{1});
}

TEST(RendezvousStore, GivingUpReachesTheOthersOfThatGroupOnly) {
  WithRanks(2, [](int rank, TcpStore* store) {
    // A rank that has not joined yet has no name.
    ASSERT_TRUE(store->Gather("both", {0, 1}, "", In(seconds(120))).ok());
    if (rank == 0) {
      store->GiveUp("world");
      return;
    }
    const Deadline limit = In(seconds(120));
    while (store->Lost("world").empty() && steady_clock::now() < limit) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(store->Lost("world"), std::vector<int>{0});
    EXPECT_TRUE(store->Lost("another").empty());
    EXPECT_TRUE(store->Lost().empty());
  });
}

TEST(RendezvousStore, ADoubledRankIsNamedToEverybody) {
  StoreAddress address = Address();
  address.secret = "0123456789abcdef";
  std::vector<std::string> messages(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      // Ranks 0, 1 and 1 of three.
      const Result<std::unique_ptr<TcpStore>> store =
          TcpStore::Join(address, std::min(i, 1), 3, In(seconds(120)));
      if (!store.ok()) {
        messages[static_cast<size_t>(i)] = store.status().message();
        return;
      }
      messages[static_cast<size_t>(i)] =
          store.value()->Gather("key", {0, 1, 2}, "", In(seconds(120))).status().message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(messages[0].find("rank 1 was started twice"), std::string::npos) << messages[0];
  EXPECT_TRUE(messages[1].find("rank 1 was started twice") != std::string::npos ||
              messages[2].find("rank 1 was started twice") != std::string::npos);
}

// With a secret at once. Without one it may be an unrelated process: the store waits for the rank,
// and the final error says what connected in its place.
void ExpectAWrongSizeIsNamed(const std::string& secret, milliseconds limit, ErrorCode code) {
  StoreAddress address = Address();
  address.secret = secret;
  const Result<std::unique_ptr<TcpStore>> zero = TcpStore::Join(address, 0, 2, In(seconds(120)));
  ASSERT_TRUE(zero.ok()) << zero.status().message();
  const Result<std::unique_ptr<TcpStore>> other = TcpStore::Join(address, 1, 3, In(seconds(120)));
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("started for 3 ranks and rank 0 for 2"),
            std::string::npos);
  const Status all = zero.value()->Gather("key", {0, 1}, "", In(limit)).status();
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.code(), code) << all.message();
  EXPECT_NE(all.message().find("was started for 3 ranks"), std::string::npos) << all.message();
}

TEST(RendezvousStore, AWrongSizeIsNamed) {
  ExpectAWrongSizeIsNamed("0123456789abcdef", seconds(20), ErrorCode::kInvalid);
  ExpectAWrongSizeIsNamed("", milliseconds(200), ErrorCode::kTimeout);
}

TEST(RendezvousStore, UnrelatedConnectionsDisturbNoRank) {
  const StoreAddress address = Address();
  std::thread zero([&] {
    const Result<std::unique_ptr<TcpStore>> store = TcpStore::Join(address, 0, 2, In(seconds(120)));
    ASSERT_TRUE(store.ok());
    EXPECT_TRUE(store.value()->Gather("key", {0, 1}, "", In(seconds(120))).ok());
  });
  for (const std::string& rubbish :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(5000, '\xff'),
        std::string(kFrameMagic) + std::string("\xff\xff\xff\xff\x01", 5),
        std::string(kFrameMagic) + std::string("\x00\x00\x00\x00\x02", 5), std::string()}) {
    Result<Socket> socket = Unavailable("not connected");
    while (!socket.ok()) socket = ConnectTo("localhost", address.port, In(seconds(120)));
    const Status sent = SendAll(socket.value(), rubbish, In(seconds(120)));
    static_cast<void>(sent);
  }
  const Result<std::unique_ptr<TcpStore>> one = TcpStore::Join(address, 1, 2, In(seconds(120)));
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_TRUE(one.value()->Gather("key", {0, 1}, "", In(seconds(120))).ok());
  zero.join();
}

TEST(RendezvousStore, AMissingRankZeroIsNamed) {
  StoreAddress address = Address();
  const Result<std::unique_ptr<TcpStore>> store =
      TcpStore::Join(address, 1, 2, In(milliseconds(200)));
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), ErrorCode::kTimeout);
  EXPECT_NE(store.status().message().find("rank 0 has not arrived"), std::string::npos);
}

TEST(RendezvousStore, ATakenPortIsSaid) {
  StoreAddress address = Address();
  const Result<Socket> taken = ListenOn("localhost", address.port);
  ASSERT_TRUE(taken.ok());
  const Result<std::unique_ptr<TcpStore>> store = TcpStore::Join(address, 0, 2, In(seconds(120)));
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.status().message().find("set MASTER_PORT to a free port"), std::string::npos);
  // With several ports to choose from, the next one is taken.
  address.ports = 8;
  EXPECT_TRUE(TcpStore::Join(address, 0, 1, In(seconds(120))).ok());
}

// A store to which many ranks come at once replies late, and by then has admitted the rank.
TEST(RendezvousStore, TheReplyToAHelloMayTakeLongerThanFindingTheStore) {
  const StoreAddress address = Address();
  const Result<std::unique_ptr<TcpStore>> store = TcpStore::Join(address, 0, 2, In(seconds(120)));
  ASSERT_TRUE(store.ok()) << store.status().message();
  FrameLink link;
  ASSERT_TRUE(link.Connect(address.host, address.port, In(seconds(120))).ok());
  pollfd greeted{link.socket().get(), POLLIN, 0};
  ASSERT_EQ(poll(&greeted, 1, 120000), 1);
  const Result<Frame> verdict =
      link.Greet(HelloForTest(1, 2), {"", StoreName(address.host, address.port), ""},
                 steady_clock::now(), In(seconds(120)));
  ASSERT_TRUE(verdict.ok()) << verdict.status().message();
  EXPECT_EQ(verdict.value().kind, FrameKind::kFine);
}

bool TakeFrame(std::string_view bytes, FrameKind* kind, std::string* body, bool* damaged) {
  FrameBuffer buffer;
  *buffer.Tail() = bytes;
  return buffer.Take(1000, kind, body, damaged);
}

TEST(Frame, ADamagedFrameIsNoFrame) {
  std::string body;
  FrameKind kind{};
  bool damaged = false;
  EXPECT_FALSE(TakeFrame(std::string_view("\xe9\x03\0\0\x01", 5), &kind, &body, &damaged));
  EXPECT_TRUE(damaged) << "longer than the limit";
  EXPECT_FALSE(TakeFrame(std::string_view("\xe8\x03\0\0\x01", 5), &kind, &body, &damaged));
  EXPECT_FALSE(damaged);
  for (const int unknown : {0, static_cast<int>(FrameKind::kCells) + 1}) {
    const std::string head = std::string("\1\0\0\0", 4) + static_cast<char>(unknown);
    EXPECT_FALSE(TakeFrame(head, &kind, &body, &damaged));
    EXPECT_TRUE(damaged);
  }
  const std::string whole = FrameWriter(FrameKind::kSet).Text("a").Number(7).Take();
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(TakeFrame(whole.substr(0, length), &kind, &body, &damaged));
    EXPECT_FALSE(damaged);
  }
  ASSERT_TRUE(TakeFrame(whole, &kind, &body, &damaged));
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
}  // namespace diapason::rendezvous
