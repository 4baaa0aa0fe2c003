#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "agree/redis_testing.h"

namespace diapason::agree {
namespace {

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

// However the job's key goes, all of it goes: no rank ever finds an empty cell instead.
TEST_F(RedisStoreTest, AnEvictedOrDeletedJobIsNoticedByEveryRank) {
  StartServer({"--maxmemory", "20mb"});
  if (server_ == nullptr) return;
  const std::string key = RedisJobKey("job");
  for (const bool evict : {false, true}) {
    ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory-policy", "noeviction"}));
    const auto one = Open();
    const auto two = Open();
    ASSERT_EQ(one->Propose("a", "1").value(), "1");
    if (evict) {
      ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"}));
      const std::string filler(1 << 20, 'x');
      for (int i = 0; i < 200 && server_->Answer({"EXISTS", key}).value().number == 1; ++i) {
        static_cast<void>(server_->Command({"SET", Format("other{}", i), filler}));
      }
      ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory", "0"}));
    } else {
      ASSERT_TRUE(server_->Command({"DEL", key}));
    }
    ASSERT_EQ(server_->Answer({"EXISTS", key}).value().number, 0);
    EXPECT_TRUE(NoWayBack(one->Read("a").status()));
    EXPECT_TRUE(NoWayBack(two->Read("a").status()));
    EXPECT_TRUE(NoWayBack(two->Propose("a", "2").status()));
    EXPECT_TRUE(NoWayBack(one->Propose("new", "2").status()));
    one->KeepAlive(Soon());
    one->Leave(Soon());
    EXPECT_EQ(server_->Answer({"EXISTS", key}).value().number, 0);
  }
}

TEST_F(RedisStoreTest, CellsWithoutANonceBelongToNoJob) {
  StartServer();
  if (server_ == nullptr) return;
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  ASSERT_TRUE(server_->Command({"HDEL", RedisJobKey("job"), ".nonce"}));
  EXPECT_TRUE(NoWayBack(store->Read("a").status()));
  EXPECT_FALSE(TryOpen().ok());
}

TEST_F(RedisStoreTest, NothingIsEverThereWithoutAnExpiry) {
  StartServer();
  if (server_ == nullptr) return;
  const auto store = Open();
  EXPECT_EQ(KeysWithoutExpiry(), 0);
  EXPECT_GT(SecondsLeft(), 80000);
  const std::string key = RedisJobKey("job");
  ASSERT_TRUE(server_->Command({"EXPIRE", key, "100"}));
  ASSERT_TRUE(store->Propose("a", "1").ok());
  EXPECT_GT(SecondsLeft(), 80000);
  ASSERT_TRUE(server_->Command({"EXPIRE", key, "100"}));
  store->KeepAlive(Soon());
  EXPECT_GT(SecondsLeft(), 80000);
  const auto other = Open();
  other->Leave(Soon());
  EXPECT_LE(SecondsLeft(), 3600);
  EXPECT_GT(SecondsLeft(), 1000);
  EXPECT_EQ(store->Read("a").value(), "1");
  store->KeepAlive(Soon());
  EXPECT_GT(SecondsLeft(), 80000);
  // A process that opens the store renews the day.
  ASSERT_TRUE(server_->Command({"EXPIRE", key, "100"}));
  const auto third = Open();
  EXPECT_GT(SecondsLeft(), 80000);
  EXPECT_EQ(KeysWithoutExpiry(), 0);
}

TEST_F(RedisStoreTest, KeepAliveConnectsAnew) {
  StartServer();
  if (server_ == nullptr) return;
  const auto store = Open();
  ASSERT_TRUE(server_->Command({"EXPIRE", RedisJobKey("job"), "100"}));
  ASSERT_TRUE(server_->Command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}));
  store->KeepAlive(Soon());  // finds the connection lost
  store->KeepAlive(Soon());
  EXPECT_GT(SecondsLeft(), 80000);
}

TEST_F(RedisStoreTest, AGuestOpensOnlyARunningJobAndKeepsNothing) {
  StartServer();
  if (server_ == nullptr) return;
  StoreOptions options;
  options.job = "job";
  options.existing_only = true;
  options.limit = milliseconds(120000);
  EXPECT_EQ(OpenRedisStore(options, server_->Url()).status().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(server_->Answer({"KEYS", "*"}).value().list.empty());
  const auto rank = Open();
  ASSERT_TRUE(rank->Propose("a", "1").ok());
  ASSERT_TRUE(server_->Command({"EXPIRE", RedisJobKey("job"), "100"}));
  const auto guest = OpenRedisStore(options, server_->Url());
  ASSERT_TRUE(guest.ok()) << guest.status().message();
  EXPECT_EQ(guest.value()->Read("a").value(), "1");
  EXPECT_EQ(guest.value()->Propose("b", "2").value(), "2");
  EXPECT_EQ(rank->Read("b").value(), "2");
  guest.value()->KeepAlive(Soon());
  EXPECT_LE(SecondsLeft(), 100);
  ASSERT_TRUE(server_->Command({"EXPIRE", RedisJobKey("job"), "5000"}));
  guest.value()->Leave(Soon());
  guest.value()->Forget("");
  guest.value()->Forget("a");
  EXPECT_GT(SecondsLeft(), 4000);
  EXPECT_EQ(rank->Read("a").value(), "1");
}

TEST_F(RedisStoreTest, ForgottenCellsAreGoneAndOthersStay) {
  StartServer();
  if (server_ == nullptr) return;
  const auto store = Open();
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(store->Propose(Format("c{}.0.{}", i % 2, i), "v").ok());
  }
  store->Forget("c1.0.");
  EXPECT_EQ(server_->Answer({"HLEN", RedisJobKey("job")}).value().number, 1501);
  EXPECT_EQ(store->Read("c0.0.2").value(), "v");
  // Not in a later job.
  ASSERT_TRUE(server_->Command({"DEL", RedisJobKey("job")}));
  const auto next = Open();
  ASSERT_TRUE(next->Propose("c0.0.2", "w").ok());
  store->Forget("c0.");
  store->Forget("");
  EXPECT_EQ(next->Read("c0.0.2").value(), "w");
}

TEST_F(RedisStoreTest, WhatPassesIsNotTheEnd) {
  StartServer({"--min-replicas-to-write", "0"});
  if (server_ == nullptr) return;
  const auto store = Open();
  ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory", "1"}));
  EXPECT_TRUE(Retryable(store->Propose("a", "1", Now()).status()));
  ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory", "0"}));
  ASSERT_TRUE(server_->Command({"CONFIG", "SET", "min-replicas-to-write", "1"}));
  EXPECT_TRUE(Retryable(store->Propose("a", "1", Now()).status()));
  ASSERT_TRUE(server_->Command({"CONFIG", "SET", "min-replicas-to-write", "0"}));
  EXPECT_EQ(store->Propose("a", "2", Soon()).value(), "2");
  // Gone for a while, or silent: the same process is there again.
  server_->Stop();
  EXPECT_TRUE(Retryable(store->Read("a", Now()).status()));
  server_->GoOn();
  EXPECT_EQ(store->Read("a", Soon()).value(), "2");
  server_->Kill();
  EXPECT_TRUE(Retryable(store->Read("a", Now()).status()));
}

TEST(RedisLink, ErrorsThatPassAndOthers) {
  const RedisLink link{RedisAddress{}};
  for (const char* answer :
       {"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script",
        "OOM command not allowed when used memory > 'maxmemory'.", "TRYAGAIN Multiple keys",
        "CLUSTERDOWN The cluster is down", "MISCONF Errors writing to the AOF file",
        "NOREPLICAS Not enough good replicas to write.", "ERR max number of clients reached",
        "ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed"}) {
    EXPECT_TRUE(Retryable(link.Refused("x", answer))) << answer;
  }
  for (const char* answer :
       {"READONLY You can't write against a read only replica.", "ERR unknown command", "",
        "MASTERDOWN Link with MASTER is down", "NOPERM this user has no permissions",
        "WRONGTYPE Operation against a key", "MOVED 3999 127.0.0.1:6381", "LOADINGX",
        "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write"}) {
    EXPECT_TRUE(NoWayBack(link.Refused("x", answer))) << answer;
  }
}

// Waiting for other threads counts.
TEST_F(RedisStoreTest, AThreadThatWaitsForAnotherKeepsItsDeadline) {
  StartServer();
  if (server_ == nullptr) return;
  const auto store = Open();
  server_->Stop();
  std::thread slow([&] { EXPECT_TRUE(store->Propose("a", "1", Soon()).ok()); });
  // Whichever thread has the connection: both would wait for a minute.
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Retryable(store->Read("b", Now()).status()));
  server_->GoOn();
  slow.join();
  EXPECT_EQ(store->Read("a").value(), "1");
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
    EXPECT_EQ(store->Propose(Format("b{}", i), "2").value(), "2");
  }
  ASSERT_TRUE(server_->Command({"SCRIPT", "FLUSH"}));
  EXPECT_EQ(store->Propose("c", "3").value(), "3");
}

TEST_F(RedisStoreTest, ADeadServerIsAnErrorAndNoSignal) {
  StartServer();
  if (server_ == nullptr) return;
  StoreOptions options;
  options.job = "job";
  options.limit = milliseconds(3000);
  auto opened = OpenRedisStore(options, server_->Url());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const auto store = std::move(opened).value();
  server_->Kill();
  // Too large for the socket buffer: it is written in parts, the second of them to a closed
  // connection. By default SIGPIPE would end this process here.
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
      OpenRedisStore(options, Format("redis://127.0.0.1:{}", ntohs(address.sin_port)));
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.status().message().find("in time"), std::string::npos)
      << store.status().message();
  ::close(deaf);
  // And an address without a server.
  const auto unreachable =
      OpenRedisStore(options, Format("redis://127.0.0.1:{}", ntohs(address.sin_port)));
  EXPECT_FALSE(unreachable.ok());
  EXPECT_FALSE(OpenRedisStore(options, "redis://no-such-host.invalid").ok());
}

TEST_F(RedisStoreTest, AStoppedServerIsAnErrorWithinTheLimit) {
  StartServer();
  if (server_ == nullptr) return;
  StoreOptions options;
  options.job = "job";
  options.limit = milliseconds(3000);
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
  // The job's key has an expiry, so that volatile ones would take it too.
  for (const char* policy : {"allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-ttl"}) {
    ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory-policy", policy}));
    EXPECT_FALSE(TryOpen().ok()) << policy;
  }
  ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory-policy", "noeviction"}));
  const auto store = TryOpen();
  EXPECT_TRUE(store.ok());
  ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}));
  ASSERT_TRUE(server_->Command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}));
  EXPECT_TRUE(NoWayBack(store.value()->Read("a").status())) << "also later";
  ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}));
  ASSERT_TRUE(server_->Command({"CONFIG", "SET", "maxmemory", "0"}));
  EXPECT_TRUE(TryOpen().ok());
}

TEST_F(RedisStoreTest, AFullServerIsAnError) {
  StartServer({"--maxmemory", "4mb", "--maxmemory-policy", "noeviction"});
  if (server_ == nullptr) return;
  const auto store = Open();
  int written = 0;
  Result<std::string> last = std::string();
  const std::string value(100000, 'x');
  while (written < 1000 && (last = store->Propose(Format("k{}", written), value, Now())).ok()) {
    ++written;
  }
  EXPECT_LT(written, 100);
  EXPECT_TRUE(Retryable(last.status()));
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
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/password";
  std::ofstream(file) << "s3 cret@\n";
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_TRUE(TryOpen("default@", "/2?password-file=" + file).ok());
  EXPECT_TRUE(TryOpen("", "?password-file=" + file).ok());
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  const auto refused = TryOpen("default@", "/2?password-file=" + file);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message().find("cret@"), std::string::npos);
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
