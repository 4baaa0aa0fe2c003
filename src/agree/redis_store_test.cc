#include <gtest/gtest.h>

#include <fstream>

#include "agree/redis_link.h"
#include "agree/stores.h"
#include "agree/testing.h"

namespace diapason::agree {
namespace {

using std::chrono::milliseconds;

TEST(RedisAddress, AllParts) {
  const auto plain = ParseRedisAddress("redis://host");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain.value().host, "host");
  EXPECT_EQ(plain.value().port, 6379);
  EXPECT_EQ(plain.value().database, 0);
  EXPECT_FALSE(plain.value().authenticate);

  const auto full = ParseRedisAddress("redis://me:p%40ss%3Aw%2F@[::1]:7000/3");
  ASSERT_TRUE(full.ok()) << full.status().message();
  EXPECT_EQ(full.value().user, "me");
  EXPECT_EQ(full.value().password, "p@ss:w/");
  EXPECT_EQ(full.value().host, "::1");
  EXPECT_EQ(full.value().port, 7000);
  EXPECT_EQ(full.value().database, 3);

  const auto only_password = ParseRedisAddress("redis://:a:b@c@10.0.0.1:1/");
  ASSERT_TRUE(only_password.ok());
  EXPECT_EQ(only_password.value().user, "");
  EXPECT_EQ(only_password.value().password, "a:b@c");
  EXPECT_EQ(only_password.value().host, "10.0.0.1");
}

TEST(RedisAddress, WrongOnesAreRefusedWithoutThePassword) {
  for (const char* url :
       {"redis://", "redis://:secret@", "redis://:secret@:6379", "redis://:secret@host:",
        "redis://:secret@host:0", "redis://:secret@host:65536", "redis://:secret@host:6x",
        "redis://:secret@host/x", "redis://:secret@::1", "redis://:secret@[::1",
        "redis://:secret@[::1]x", "redis://:secret%@host", "redis://:secret%4@host",
        "redis://:secret%zz@host", "redis://:secret@ho st", "redis://:secret@host/-1"}) {
    const auto address = ParseRedisAddress(url);
    ASSERT_FALSE(address.ok()) << url;
    EXPECT_EQ(address.status().message().find("secret"), std::string::npos) << url;
  }
}

class RedisStoreTest : public testing::Test {
 protected:
  void StartServer(std::vector<std::string> options = {}) {
    server_ = RedisServer::Start(std::move(options));
    if (server_ == nullptr) GTEST_SKIP() << "redis-server is not installed here";
  }
  Result<std::unique_ptr<Store>> TryOpen(const std::string& who = "",
                                         const std::string& rest = "") const {
    StoreOptions options;
    options.job = "job";
    options.limit = milliseconds(10000);
    return OpenRedisStore(options, server_->Url(who, rest));
  }
  std::unique_ptr<Store> Open() const {
    auto store = TryOpen();
    if (!store.ok()) ADD_FAILURE() << store.status().message();
    return store.ok() ? std::move(store).value() : nullptr;
  }
  std::unique_ptr<RedisServer> server_;
};

TEST_F(RedisStoreTest, AFlushedServerIsAnError) {
  StartServer();
  if (server_ == nullptr) return;
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  ASSERT_TRUE(server_->Command({"FLUSHALL"}));
  EXPECT_FALSE(store->Read("a").ok());
  EXPECT_FALSE(store->Propose("b", "1").ok());
  // Also when another one has made a new nonce there.
  const auto other = Open();
  EXPECT_EQ(other->Propose("b", "2").value(), "2");
  EXPECT_FALSE(store->Read("b").ok());
}

TEST_F(RedisStoreTest, ALostConnectionIsMadeAnew) {
  StartServer();
  if (server_ == nullptr) return;
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(server_->Command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}));
    EXPECT_EQ(store->Read("a").value(), "1");
    ASSERT_TRUE(server_->Command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}));
    EXPECT_EQ(store->Propose(Format("b%d", i), "2").value(), "2");
  }
  ASSERT_TRUE(server_->Command({"SCRIPT", "FLUSH"}));
  EXPECT_EQ(store->Propose("c", "3").value(), "3");
}

TEST_F(RedisStoreTest, ARestartedServerIsAnErrorEvenWithItsSnapshot) {
  StartServer();
  if (server_ == nullptr) return;
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  ASSERT_TRUE(server_->Command({"SAVE"}));
  ASSERT_TRUE(store->Propose("b", "1").ok());
  ASSERT_TRUE(server_->Restart());
  // The nonce is there again, and "a"; "b" is not.
  EXPECT_FALSE(store->Read("b").ok());
  EXPECT_FALSE(store->Propose("b", "2").ok());
  EXPECT_FALSE(store->Read("a").ok());
  EXPECT_NE(store->Read("a").status().message().find("restarted"), std::string::npos);
}

TEST_F(RedisStoreTest, ADeadServerIsAnErrorAndNoSignal) {
  StartServer();
  if (server_ == nullptr) return;
  StoreOptions options;
  options.job = "job";
  options.limit = milliseconds(200);
  auto opened = OpenRedisStore(options, server_->Url());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const auto store = std::move(opened).value();
  server_->Kill();
  // Too large for the socket's memory: it is written in parts, the second of them to nobody. The
  // usual effect of SIGPIPE would end this process here.
  EXPECT_FALSE(store->Propose("b", std::string(kLongestValue, 'x')).ok());
  EXPECT_FALSE(store->Propose("b", "x").ok());
  EXPECT_FALSE(store->Read("a").ok());
}

TEST_F(RedisStoreTest, AServerThatDoesNotAnswerIsAnErrorWithinTheLimit) {
  // Accepts connections in its backlog and never answers.
  const int deaf = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(deaf, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(deaf, 5), 0);
  ASSERT_EQ(::getsockname(deaf, reinterpret_cast<sockaddr*>(&address), &size), 0);
  StoreOptions options;
  options.job = "job";
  options.limit = milliseconds(50);
  const auto store =
      OpenRedisStore(options, Format("redis://127.0.0.1:%d", ntohs(address.sin_port)));
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.status().message().find("in time"), std::string::npos)
      << store.status().message();
  ::close(deaf);
  // And one where nobody is.
  const auto nobody =
      OpenRedisStore(options, Format("redis://127.0.0.1:%d", ntohs(address.sin_port)));
  EXPECT_FALSE(nobody.ok());
  EXPECT_FALSE(OpenRedisStore(options, "redis://no-such-host.invalid").ok());
}

TEST_F(RedisStoreTest, AStoppedServerIsAnErrorWithinTheLimit) {
  StartServer();
  if (server_ == nullptr) return;
  StoreOptions options;
  options.job = "job";
  options.limit = milliseconds(500);
  auto store = OpenRedisStore(options, server_->Url());
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(server_->Command({"CLIENT", "PAUSE", "60000"}));
  // Had it waited for the server, it would have got its answer.
  EXPECT_FALSE(store.value()->Propose("a", "1").ok());
}

TEST_F(RedisStoreTest, ServersThatThrowKeysAwayAreRefused) {
  StartServer({"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"});
  if (server_ == nullptr) return;
  const auto refused = TryOpen();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("noeviction"), std::string::npos);
  for (const char* policy : {"allkeys-lfu", "allkeys-random"}) {
    ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory-policy", policy}));
    EXPECT_FALSE(TryOpen().ok()) << policy;
  }
  for (const char* policy : {"noeviction", "volatile-lru", "volatile-ttl"}) {
    ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory-policy", policy}));
    EXPECT_TRUE(TryOpen().ok()) << policy;
  }
  ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}));
  ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory", "0"}));
  EXPECT_TRUE(TryOpen().ok());
}

TEST_F(RedisStoreTest, AFullServerIsAnError) {
  StartServer({"--maxmemory", "4mb", "--maxmemory-policy", "noeviction"});
  if (server_ == nullptr) return;
  const auto store = Open();
  int written = 0;
  while (written < 1000 && store->Propose(Format("k%d", written), std::string(100000, 'x')).ok()) {
    ++written;
  }
  EXPECT_LT(written, 100);
}

TEST_F(RedisStoreTest, PasswordsAndUsers) {
  StartServer({"--requirepass", "s3 cret@"});
  if (server_ == nullptr) return;
  for (const char* who : {"", ":wr0ng@", "nobody:s3%20cret%40@"}) {
    const auto refused = TryOpen(who);
    ASSERT_FALSE(refused.ok()) << who;
    EXPECT_EQ(refused.status().message().find("wr0ng"), std::string::npos);
    EXPECT_EQ(refused.status().message().find("cret"), std::string::npos);
  }
  for (const char* who : {":s3%20cret%40@", "default:s3%20cret%40@"}) {
    const auto store = TryOpen(who, "/2");
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_TRUE(store.value()->Propose("a", "1").ok());
    EXPECT_EQ(store.value()->Describe().find("cret"), std::string::npos);
    EXPECT_NE(store.value()->Describe().find("database 2"), std::string::npos);
  }
  EXPECT_FALSE(TryOpen(":s3%20cret%40@", "/999").ok());
}

TEST_F(RedisStoreTest, AForgottenJobsNonceIsNotUsedAgain) {
  StartServer();
  if (server_ == nullptr) return;
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  const auto same = Open();
  EXPECT_EQ(same->Read("a").value(), "1");
  store->Forget("");
  const auto next = Open();
  EXPECT_FALSE(next->Read("a").value().has_value());
  EXPECT_FALSE(store->Propose("b", "1").ok());
}

}  // namespace
}  // namespace diapason::agree
