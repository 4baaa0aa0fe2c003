// Whatever unauthenticated processes send, however slowly and often: the store's memory stays
// bounded, and the ranks can join.
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <thread>

#include "base/text.h"
#include "rendezvous/peer_user.h"
#include "rendezvous/store_visitor.h"

namespace diapason::rendezvous {
namespace {

using std::chrono::milliseconds;

constexpr const char* kLimitsSecret = "0123456789abcdefghijklmnopqrstuv";

StoreServerOptions TwoRanks() {
  StoreServerOptions options;
  options.size = 2;
  options.secret = kLimitsSecret;
  return options;
}

// A visitor that becomes rank 1.
std::unique_ptr<Visitor> JoinByHand(const StoreForTest& store) {
  auto visitor = std::make_unique<Visitor>(store.address.port);
  const HandshakeInputs shared = visitor->Challenge(store.address.secret, store.Name());
  visitor->Say(std::string(kFrameMagic) + EncodeHello(HelloForTest(1, store.size), shared));
  FrameKind kind{};
  std::string body;
  EXPECT_TRUE(visitor->Listen(&kind, &body));
  EXPECT_EQ(kind, FrameKind::kFine);
  return visitor;
}

std::string HeaderOf(FrameKind kind, uint32_t length) {
  std::string header(5, static_cast<char>(kind));
  for (unsigned i = 0; i < 4; ++i) header[i] = static_cast<char>((length >> (8 * i)) & 0xffU);
  return header;
}

TEST(StoreLimits, AHugeFrameIsRefusedByItsLength) {
  StoreServerOptions options = TwoRanks();
  options.hello_limit = std::chrono::minutes(10);  // not what closes it
  const StoreForTest store(options);
  // From an unauthenticated process: refused as soon as the length has arrived, before the body.
  {
    Visitor visitor(store.address.port);
    visitor.Say(std::string(kFrameMagic) + HeaderOf(FrameKind::kHello, kUnauthenticatedLimit + 1));
    EXPECT_TRUE(visitor.IsTurnedAway());
  }
  {
    Visitor visitor(store.address.port);
    visitor.Say(std::string(kFrameMagic) + HeaderOf(FrameKind::kHello, kUnauthenticatedLimit));
    EXPECT_TRUE(visitor.IsOpen());
  }
  // From a rank.
  const std::unique_ptr<Visitor> rank = JoinByHand(store);
  rank->Say(HeaderOf(FrameKind::kSet, RequestLimit(2) + 1));
  EXPECT_TRUE(rank->IsTurnedAway());
  EXPECT_EQ(store.server->turned_away(), 2U);
}

TEST(StoreLimits, TheLargestFrameOfARankGoesThrough) {
  const StoreForTest store(TwoRanks());
  Result<std::unique_ptr<TcpStore>> one = store.Join(1);
  ASSERT_TRUE(one.ok()) << one.status().message();
  const std::string value(RequestLimit(2) - 2 * sizeof(uint64_t) - 3, 'x');
  ASSERT_TRUE(one.value()->Set("key", value).ok());
  EXPECT_EQ(one.value()->Get("key", TestLimit()).value(), value);
}

TEST(StoreLimits, TheStoreDoesNotGrowForEver) {
  StoreServerOptions options = TwoRanks();
  options.stored = 0;  // and 1 MiB for each of the two ranks
  const StoreForTest store(options);
  Result<std::unique_ptr<TcpStore>> one = store.Join(1);
  ASSERT_TRUE(one.ok()) << one.status().message();
  const std::string value(size_t{1} << 20U, 'x');
  // Replacing a value needs no additional memory.
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(one.value()->Set("key", value).ok());
  const Status full = one.value()->Set("another", value);
  ASSERT_FALSE(full.ok());
  EXPECT_NE(full.message().find("store is full"), std::string::npos) << full.message();
}

// Of this process, in bytes.
size_t Resident() {
  size_t pages = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%*u %zu", &pages) != 1) pages = 0;
  if (file != nullptr) std::fclose(file);
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// A rank that sends requests and reads no reply: the store stops reading from it.
TEST(StoreLimits, AnswersThatAreNotReadDoNotPileUp) {
  const StoreForTest store(TwoRanks());
  const std::unique_ptr<Visitor> rank = JoinByHand(store);
  const std::string value(size_t{1} << 20U, 'x');
  FrameKind kind{};
  std::string body;
  ASSERT_TRUE(rank->Say(FrameWriter(FrameKind::kSet).Text("key").Text(value).Take()));
  ASSERT_TRUE(rank->Listen(&kind, &body));
  const size_t before = Resident();
  constexpr int kAsked = 200;
  std::string questions;
  for (int i = 0; i < kAsked; ++i) {
    questions += FrameWriter(FrameKind::kGet).Text("key").Number(1000).Take();
  }
  ASSERT_TRUE(rank->Say(questions));
  // Others are served meanwhile: the second time after all that has come before.
  for (int i = 0; i < 2; ++i) {
    Visitor visitor(store.address.port);
    EXPECT_EQ(visitor.Challenge(kLimitsSecret, store.Name()).nonce.size(), 32U);
  }
  EXPECT_LT(Resident(), before + kAsked / 2 * value.size());
  // It goes on as the answers are read.
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(rank->Listen(&kind, &body)) << i;
    ASSERT_EQ(kind, FrameKind::kFine);
    ASSERT_EQ(body.size(), value.size() + sizeof(uint64_t));
  }
}

TEST(StoreLimits, SilentConnectionsAreFewAndKeepNoRankOut) {
  StoreServerOptions options = TwoRanks();
  options.unauthenticated = 8;
  options.hello_limit = std::chrono::minutes(10);  // not what this is about
  const StoreForTest store(options);
  std::vector<std::unique_ptr<Visitor>> silent;
  for (int i = 0; i < 60; ++i) silent.push_back(std::make_unique<Visitor>(store.address.port));
  Result<std::unique_ptr<TcpStore>> one = store.Join(1);
  ASSERT_TRUE(one.ok()) << one.status().message();
  // The oldest go first.
  EXPECT_TRUE(silent[0]->IsTurnedAway());
  size_t open = 0;
  for (const auto& visitor : silent) open += visitor->IsOpen() ? 1 : 0;
  EXPECT_LE(open, 8U + 2U);
  EXPECT_GE(store.server->turned_away(), 60U - (8U + 2U));
}

TEST(StoreLimits, ASlowHelloRunsOutOfTime) {
  StoreServerOptions options = TwoRanks();
  options.hello_limit = milliseconds(2000);  // enough for rank 1, which joins below
  const StoreForTest store(options);
  Visitor silent(store.address.port);
  Visitor slow(store.address.port);
  // Right in every byte, and one at a time: the whole would take minutes.
  const HandshakeInputs shared = slow.Challenge(kLimitsSecret, store.Name());
  const std::string hello = std::string(kFrameMagic) + EncodeHello(HelloForTest(1, 2), shared);
  size_t said = 0;
  while (said < hello.size() && slow.IsOpen()) {
    slow.Say(hello.substr(said++, 1));
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_LT(said, hello.size());
  EXPECT_TRUE(silent.IsTurnedAway());
  EXPECT_TRUE(store.Join(1).ok());
}

TEST(StoreLimits, TheLogStaysShort) {
  std::vector<std::string> lines;
  TurnedAway turned_away("rank 0", [&](const std::string& line) { lines.push_back(line); });
  for (int i = 0; i < 1000; ++i) turned_away.Note("192.0.2.7", "it barks");
  EXPECT_EQ(turned_away.count(), 1000U);
  // One, and one more where a slow machine takes ten seconds for this.
  ASSERT_GE(lines.size(), 1U);
  EXPECT_LE(lines.size(), 2U);
  EXPECT_EQ(lines[0],
            "diapason: rank 0: a connection from 192.0.2.7 was turned away, number 1: it barks");
}

TEST(StoreLimits, ABufferKeepsNoMoreThanItMust) {
  FrameBuffer buffer;
  const std::string small = FrameWriter(FrameKind::kSet).Text(std::string(100, 'x')).Take();
  FrameKind kind{};
  std::string body;
  bool damaged = false;
  *buffer.Tail() += small;
  for (int i = 0; i < 10000; ++i) {
    // One is always left, so that it is never empty.
    *buffer.Tail() += small;
    ASSERT_TRUE(buffer.Take(kUnauthenticatedLimit, &kind, &body, &damaged));
    ASSERT_LE(buffer.Tail()->size(), 4 * small.size());
  }
  *buffer.Tail() += FrameWriter(FrameKind::kSet).Text(std::string(1 << 20, 'x')).Take();
  ASSERT_TRUE(buffer.Take(kUnauthenticatedLimit, &kind, &body, &damaged));
  ASSERT_TRUE(buffer.Take(kAnswerLimit, &kind, &body, &damaged));
  EXPECT_LT(buffer.Tail()->capacity(), size_t{1} << 20U);
}

TEST(PeerUser, IsTheUserOfTheOtherEnd) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    const int port = PortForTest();
    const Result<Socket> listener = ListenOn(address, port);
    if (!listener.ok()) continue;  // no IPv6 here
    const Result<Socket> client = ConnectTo(address, port, TestLimit());
    ASSERT_TRUE(client.ok()) << client.status().message();
    Socket accepted;
    while (!accepted.open()) {
      accepted = Socket(accept4(listener.value().get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
    const std::optional<uid_t> user = PeerUser(accepted);
    if (!user.has_value()) GTEST_SKIP() << "this kernel does not tell";
    EXPECT_EQ(*user, geteuid());
    EXPECT_FALSE(PeerUser(listener.value()).has_value());
  }
}

bool CanConnect(const std::string& address, int port) {
  return ConnectTo(address, port, TestLimit()).ok();
}

// An address of this host that is reached from others; "" without one.
std::string OutsideAddress() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  std::string found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const uint32_t number =
        ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr);
    if ((number >> 24U) == 127) continue;
    found = Format("{}.{}.{}.{}", number >> 24U, (number >> 16U) & 255U, (number >> 8U) & 255U,
                   number & 255U);
    break;
  }
  freeifaddrs(all);
  return found;
}

TEST(ListenOn, OnTheNamedAddressAndNoOther) {
  const int port = PortForTest();
  const Result<Socket> here = ListenOn("127.0.0.2", port);
  ASSERT_TRUE(here.ok()) << here.status().message();
  EXPECT_EQ(LocalAddress(here.value()), "127.0.0.2");
  EXPECT_TRUE(CanConnect("127.0.0.2", port));
  EXPECT_FALSE(CanConnect("127.0.0.1", port));
}

TEST(ListenOn, OnTheNamedAddressOfANetwork) {
  const std::string address = OutsideAddress();
  if (address.empty()) GTEST_SKIP() << "this host has loopback addresses only";
  const int port = PortForTest();
  const Result<Socket> here = ListenOn(address, port);
  ASSERT_TRUE(here.ok()) << here.status().message();
  EXPECT_EQ(LocalAddress(here.value()), address);
  EXPECT_FALSE(CanConnect("127.0.0.1", port));
}

TEST(ListenOn, EverywhereWhereTheAddressIsNotOurs) {
  const int port = PortForTest();
  // Reserved for documentation: no host has it.
  const Result<Socket> here = ListenOn("192.0.2.1", port);
  ASSERT_TRUE(here.ok()) << here.status().message();
  EXPECT_EQ(LocalAddress(here.value()), "0.0.0.0");
  EXPECT_TRUE(CanConnect("127.0.0.1", port));
}

}  // namespace
}  // namespace diapason::rendezvous
