// Processes that are not ranks of the job connect to its store. None of them may join, learn
// anything or end the job.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "base/sha256.h"
#include "base/text.h"
#include "rendezvous/store_visitor.h"

namespace diapason::rendezvous {
namespace {

using std::chrono::milliseconds;

constexpr const char* kTestSecret = "0123456789abcdefghijklmnopqrstuv";

StoreServerOptions ThreeRanks(const std::string& secret) {
  StoreServerOptions options;
  options.size = 3;
  options.secret = secret;
  options.hello_limit = std::chrono::minutes(10);  // what is wrong is not waited for
  return options;
}

// Ranks 1 and 2 come, and agree on something.
void ExpectTheRanksMeet(const StoreForTest& store) {
  Result<std::unique_ptr<TcpStore>> one = store.Join(1);
  ASSERT_TRUE(one.ok()) << one.status().message();
  Result<std::unique_ptr<TcpStore>> two = store.Join(2);
  ASSERT_TRUE(two.ok()) << two.status().message();
  std::thread other([&] {
    EXPECT_TRUE(two.value()->Gather("key", {1, 2}, "b", TestLimit()).ok());
  });
  const Result<std::vector<std::string>> all = one.value()->Gather("key", {1, 2}, "a", TestLimit());
  other.join();
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all.value(), (std::vector<std::string>{"a", "b"}));
}

void ExpectTurnedAway(const StoreForTest& store, const std::string& bytes) {
  const uint64_t before = store.server->turned_away();
  Visitor visitor(store.address.port);
  visitor.Say(bytes);
  EXPECT_TRUE(visitor.IsTurnedAway()) << bytes.substr(0, 40);
  EXPECT_EQ(store.server->turned_away(), before + 1) << bytes.substr(0, 40);
}

class StoreAttack : public testing::TestWithParam<const char*> {};

TEST_P(StoreAttack, RubbishIsTurnedAway) {
  const StoreForTest store(ThreeRanks(GetParam()));
  const std::string magic(kFrameMagic);
  ExpectTurnedAway(store, "GET / HTTP/1.1\r\n\r\n");
  ExpectTurnedAway(store, "diapason store 1" + std::string(60, '\1'));
  ExpectTurnedAway(store, magic + std::string("\xff\xff\xff\xff\x01", 5));
  ExpectTurnedAway(store, magic + std::string("\x00\x00\x00\x00\x02", 5));
  ExpectTurnedAway(store, magic + std::string("\x00\x00\x00\x00\x01", 5));
  ExpectTurnedAway(store, magic + FrameWriter(FrameKind::kSet).Text("a").Text("b").Take());
  // One byte more than an unauthenticated process may send, and one less: only the first is refused
  // by its length.
  ExpectTurnedAway(store, magic + std::string("\x01\x10\x00\x00\x01", 5));
  ExpectTheRanksMeet(store);
}

// A hello that no rank of this job sends does not end the job. With a secret there is not even a
// reply.
TEST_P(StoreAttack, AWrongHelloEndsNothing) {
  const StoreForTest store(ThreeRanks(GetParam()));
  Hello version = HelloForTest(1, 3);
  version.version = "9.9";
  uint64_t expected = 0;
  for (const Hello& hello :
       {HelloForTest(1, 4), HelloForTest(3, 3), HelloForTest(1 << 30, 3), version}) {
    Visitor visitor(store.address.port);
    const HandshakeInputs shared = visitor.Challenge("", store.Name());
    ASSERT_TRUE(visitor.Say(std::string(kFrameMagic) + EncodeHello(hello, shared)));
    FrameKind kind{};
    std::string body;
    const bool answered = visitor.Listen(&kind, &body);
    EXPECT_EQ(answered, std::string(GetParam()).empty());
    if (answered) {
      EXPECT_EQ(kind, FrameKind::kRefused);
    }
    EXPECT_TRUE(visitor.IsTurnedAway());
    EXPECT_EQ(store.server->turned_away(), ++expected);
  }
  ExpectTheRanksMeet(store);
}

TEST_P(StoreAttack, ASecondHelloForARankThatIsThereHarmsNone) {
  const StoreForTest store(ThreeRanks(GetParam()));
  Result<std::unique_ptr<TcpStore>> one = store.Join(1);
  ASSERT_TRUE(one.ok()) << one.status().message();
  {
    Visitor visitor(store.address.port);
    const HandshakeInputs shared = visitor.Challenge("", store.Name());
    visitor.Say(std::string(kFrameMagic) + EncodeHello(HelloForTest(1, 3), shared));
    EXPECT_TRUE(visitor.IsTurnedAway());
  }
  Result<std::unique_ptr<TcpStore>> two = store.Join(2);
  ASSERT_TRUE(two.ok()) << two.status().message();
  EXPECT_TRUE(one.value()->Set("key", "mine").ok());
  EXPECT_EQ(two.value()->Get("key", TestLimit()).value(), "mine");
  EXPECT_TRUE(two.value()->Lost().empty());
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutASecret, StoreAttack, testing::Values("", kTestSecret));

TEST(StoreSecret, AFakeRankIsNotLetIn) {
  const StoreForTest store(ThreeRanks(kTestSecret));
  for (const std::string& secret :
       {std::string(), std::string("0123456789abcdefghijklmnopqrstuw"), std::string(32, '\0')}) {
    Visitor visitor(store.address.port);
    const HandshakeInputs shared = visitor.Challenge(secret, store.Name());
    visitor.Say(std::string(kFrameMagic) + EncodeHello(HelloForTest(1, 3), shared) +
                FrameWriter(FrameKind::kSet).Text("key/1").Text("poison").Take());
    FrameKind kind{};
    std::string body;
    EXPECT_FALSE(visitor.Listen(&kind, &body)) << static_cast<int>(kind);
  }
  EXPECT_EQ(store.server->turned_away(), 3U);
  ExpectTheRanksMeet(store);
}

// With the proof in it, valid or not.
std::string Verbatim(const Hello& hello) {
  return FrameWriter(FrameKind::kHello)
      .Text(hello.version)
      .Text(hello.token)
      .Number(hello.rank)
      .Number(hello.size)
      .Text(hello.host)
      .Number(hello.process)
      .Text(hello.nonce)
      .Text(hello.proof)
      .Take();
}

// A hello that was valid for another connection, store or rank, or that the store itself has
// computed, is refused.
TEST(StoreSecret, AProofIsGoodForOneConversation) {
  const StoreForTest store(ThreeRanks(kTestSecret));
  const std::string magic(kFrameMagic);
  const auto refused = [&](const std::function<std::string(const HandshakeInputs&)>& frame) {
    Visitor visitor(store.address.port);
    const HandshakeInputs shared = visitor.Challenge(kTestSecret, store.Name());
    visitor.Say(magic + frame(shared));
    FrameKind kind{};
    std::string body;
    return !visitor.Listen(&kind, &body);
  };
  const Hello hello = HelloForTest(1, 3);
  // Replayed: heard in one connection, said in another.
  std::string heard;
  {
    Visitor visitor(store.address.port);
    heard = EncodeHello(hello, visitor.Challenge(kTestSecret, store.Name()));
  }
  EXPECT_TRUE(refused([&](const HandshakeInputs&) { return heard; }));
  // Relayed: the rank was told another address.
  for (const std::string& other :
       {StoreName("localhost", 1), StoreName("elsewhere", store.address.port)}) {
    EXPECT_TRUE(refused([&](const HandshakeInputs& shared) {
      return EncodeHello(hello, {shared.secret, other, shared.nonce});
    }));
  }
  // Altered on the way: another rank, size, version, job or nonce than was proven.
  const auto altered = [&](const std::function<void(Hello*)>& change) {
    return refused([&](const HandshakeInputs& shared) {
      Hello said;
      EXPECT_TRUE(ReadHello(EncodeHello(hello, shared).substr(5), &said));
      change(&said);
      return Verbatim(said);
    });
  };
  EXPECT_TRUE(altered([](Hello* said) { said->rank = 2; }));
  EXPECT_TRUE(altered([](Hello* said) { said->size = 4; }));
  EXPECT_TRUE(altered([](Hello* said) { said->version = "9.9"; }));
  EXPECT_TRUE(altered([](Hello* said) { said->nonce = DrawNonce().value(); }));
  EXPECT_TRUE(altered([](Hello* said) { said->token = "other"; }));
  // Mirrored: the proof that a store would give.
  EXPECT_TRUE(refused([&](const HandshakeInputs& shared) {
    const std::string verdict = EncodeVerdict(FrameKind::kHello, "", hello, shared);
    Hello said = hello;
    said.proof = verdict.substr(verdict.size() - kSha256Bytes);
    return Verbatim(said);
  }));
  EXPECT_FALSE(altered([](Hello*) {})) << "the unaltered one is right";
}

// A rank that knows the secret and does not fit is not an attack: the job was started wrongly.
TEST(StoreSecret, ARankOfOursThatCannotBelongIsNamedToAll) {
  for (const bool other_version : {false, true}) {
    const StoreForTest store(ThreeRanks(kTestSecret));
    Result<std::unique_ptr<TcpStore>> one = store.Join(1);
    ASSERT_TRUE(one.ok()) << one.status().message();
    Visitor visitor(store.address.port);
    const HandshakeInputs shared = visitor.Challenge(kTestSecret, store.Name());
    Hello hello = HelloForTest(2, other_version ? 3 : 4);
    if (other_version) hello.version = "9.9";
    ASSERT_TRUE(visitor.Say(std::string(kFrameMagic) + EncodeHello(hello, shared)));
    const std::string expected = other_version ? Format("runs diapason 9.9 and rank 0 {}", kVersion)
                                               : "was started for 4 ranks and rank 0 for 3";
    FrameKind kind{};
    std::string body;
    std::string text;
    ASSERT_TRUE(visitor.Listen(&kind, &body));
    EXPECT_EQ(kind, FrameKind::kRefused);
    EXPECT_TRUE(ReadVerdict(kind, body, hello, shared, &text));
    EXPECT_NE(text.find(expected), std::string::npos) << text;
    const Status told = one.value()->Gather("key", {1, 2}, "", TestLimit()).status();
    EXPECT_NE(told.message().find(expected), std::string::npos) << told.message();
  }
}

// A store that does not know the secret: its replies have no effect on a rank.
class FakeStore {
 public:
  explicit FakeStore(std::function<std::string(const Hello&)> answer, bool wants = true)
      : port_(PortForTest()), listener_(ListenOn("localhost", port_).value()) {
    thread_ = std::thread([this, answer = std::move(answer), wants] { Serve(answer, wants); });
  }
  ~FakeStore() {
    stop_ = true;
    thread_.join();
  }
  int port() const { return port_; }

 private:
  void Serve(const std::function<std::string(const Hello&)>& answer, bool wants) {
    while (!stop_) {
      const Socket client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!client.open()) {
        std::this_thread::sleep_for(milliseconds(1));
        continue;
      }
      const HandshakeInputs shared{wants ? "guessed" : "", "", DrawNonce().value()};
      if (!SendAll(client, std::string(kFrameMagic) + EncodeChallenge(shared), TestLimit()).ok()) {
        continue;
      }
      FrameBuffer in;
      Hello hello;
      FrameKind kind{};
      std::string body;
      bool damaged = false;
      while (ReceiveSome(client, in.Tail(), TestLimit()).ok()) {
        FrameBuffer copy = in;
        copy.Skip(std::min(copy.rest().size(), kFrameMagic.size()));
        if (copy.Take(kUnauthenticatedLimit, &kind, &body, &damaged)) break;
      }
      if (ReadHello(body, &hello)) {
        const Status sent = SendAll(client, answer(hello), TestLimit());
        static_cast<void>(sent);  // the rank may have left
      }
    }
  }

  const int port_;
  const Socket listener_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Why a rank did not join, after it tried to the end. On a slow machine its time may be over before
// the store has replied: then it tries again.
std::string WhyNotJoined(const FakeStore& store, const std::string& secret,
                         const std::string& expected) {
  StoreAddress address;
  address.port = store.port();
  address.secret = secret;
  const Deadline limit = TestLimit();
  Status joined;
  do {
    joined = TcpStore::Join(address, 1, 2, std::chrono::steady_clock::now() + milliseconds(200))
                 .status();
    if (joined.ok()) return "it joined";
    EXPECT_EQ(joined.code(), ErrorCode::kTimeout) << joined.message();
  } while (joined.message().find(expected) == std::string::npos &&
           std::chrono::steady_clock::now() < limit);
  return joined.message();
}

TEST(StoreSecret, AFakeStoreIsNotBelieved) {
  const auto says = [](FrameKind kind, const std::string& proof) {
    return [kind, proof](const Hello&) { return FrameWriter(kind).Text("no").Text(proof).Take(); };
  };
  const std::function<std::string(const Hello&)> answers[] = {
      says(FrameKind::kFine, ""), says(FrameKind::kFine, std::string(kSha256Bytes, '\0')),
      says(FrameKind::kRefused, ""),
      // The rank's own proof, sent back.
      [](const Hello& hello) {
        return FrameWriter(FrameKind::kFine).Text("").Text(hello.proof).Take();
      },
      [](const Hello& hello) {
        return EncodeVerdict(FrameKind::kFine, "", hello, {"another secret", "", ""});
      }};
  for (const auto& answer : answers) {
    const FakeStore store(answer);
    const std::string expected = "does not know this job's secret";
    EXPECT_NE(WhyNotJoined(store, kTestSecret, expected).find(expected), std::string::npos);
  }
}

TEST(StoreSecret, ASecretOnOneSideOnlyIsSaid) {
  const auto fine = [](const Hello&) {
    return FrameWriter(FrameKind::kFine).Text("").Text("").Take();
  };
  const FakeStore without(fine, false);
  const std::string only_here = "has no secret, and this rank has";
  EXPECT_NE(WhyNotJoined(without, kTestSecret, only_here).find(only_here), std::string::npos);
  const FakeStore with(fine, true);
  const std::string only_there = "this rank has none";
  EXPECT_NE(WhyNotJoined(with, "", only_there).find(only_there), std::string::npos);
}

}  // namespace
}  // namespace diapason::rendezvous
