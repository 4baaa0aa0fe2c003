#include <gtest/gtest.h>

#include <thread>

#include "agree/redis_testing.h"

namespace diapason::agree {
namespace {

TEST_F(RedisStoreTest, ARestartedServerThatLosesNothingIsAccepted) {
  StartServer({"--appendonly", "yes", "--appendfsync", "always"});
  if (server_ == nullptr) return;
  const auto one = Open();
  const auto two = Open();
  for (int round = 0; round < 3; ++round) {
    const std::string key = Format("k{}", round);
    ASSERT_EQ(one->Propose(key, "1").value(), "1");
    ASSERT_TRUE(server_->Restart());
    const auto read = two->Read(key);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read.value(), "1");
    EXPECT_EQ(two->Propose(key, "2").value(), "1");
    EXPECT_EQ(one->Propose(key + "b", "3").value(), "3");
  }
  // But not if its data differ.
  ASSERT_TRUE(server_->Command({"HSET", RedisJobKey("job"), "k2b", "changed"}));
  ASSERT_TRUE(server_->Restart());
  EXPECT_TRUE(NoWayBack(one->Read("k0").status()));
  EXPECT_EQ(two->Read("k0").value(), "1");
  ASSERT_TRUE(server_->Command({"HDEL", RedisJobKey("job"), "k0"}));
  ASSERT_TRUE(server_->Restart());
  EXPECT_TRUE(NoWayBack(two->Read("k1").status()));
  EXPECT_TRUE(NoWayBack(two->Propose("k0", "2").status()));
}

TEST_F(RedisStoreTest, ARestartThatForgottenCellsPrecededIsAcceptedToo) {
  StartServer({"--appendonly", "yes", "--appendfsync", "always"});
  if (server_ == nullptr) return;
  const auto one = Open();
  const auto two = Open();
  ASSERT_TRUE(one->Propose("c1.0.a", "1").ok());
  ASSERT_TRUE(two->Read("c1.0.a").ok());
  two->Done("c1.0.", 2, Soon());
  one->Forget("c1.0.");
  ASSERT_TRUE(server_->Restart());
  EXPECT_EQ(one->Propose("b", "1").value(), "1");
  EXPECT_EQ(two->Read("b").value(), "1");
}

TEST_F(RedisStoreTest, ARestartedServerThatMayLoseWritesIsRefused) {
  const std::vector<std::string> durable = {"--appendonly", "yes", "--appendfsync", "always"};
  const std::vector<std::string> lax = {"--appendonly", "yes", "--appendfsync", "everysec"};
  // Not durable before, after, both; and a server that does not tell.
  const std::vector<std::string> silent = {
      "--appendonly", "yes", "--appendfsync", "always", "--rename-command", "CONFIG", ""};
  for (const auto& [before, after] :
       {std::pair(lax, lax), std::pair(lax, durable), std::pair(durable, lax),
        std::pair(silent, silent), std::pair(durable, silent)}) {
    StartServer(before);
    if (server_ == nullptr) return;
    const auto store = Open();
    ASSERT_TRUE(store->Propose("a", "1").ok());
    ASSERT_TRUE(server_->Command({"BGREWRITEAOF"}));
    ASSERT_TRUE(server_->Restart(after));
    EXPECT_TRUE(NoWayBack(store->Read("a").status()));
    EXPECT_TRUE(NoWayBack(store->Propose("b", "1").status()));
    // A rank that comes now may use it.
    EXPECT_TRUE(TryOpen().ok());
    // For the others the error is permanent, even if the server is durable now.
    ASSERT_TRUE(server_->Restart(durable));
    EXPECT_TRUE(NoWayBack(store->Read("a").status()));
  }
}

TEST_F(RedisStoreTest, AReplicaThatTakesOverIsRefused) {
  const std::vector<std::string> durable = {"--appendonly", "yes", "--appendfsync", "always"};
  for (const bool restarted : {false, true}) {
    StartServer(durable);
    if (server_ == nullptr) return;
    std::vector<std::string> follows = durable;
    follows.insert(follows.end(), {"--replicaof", Format("127.0.0.1 {}", server_->port())});
    const auto replica = RedisServer::Start(follows);
    ASSERT_TRUE(replica != nullptr);
    const auto in_sync = [&] {
      const auto there = replica->Answer({"EXISTS", RedisJobKey("job")});
      return there.ok() && there.value().number == 1;
    };
    const auto connected = [&] {
      return server_->Answer({"INFO", "replication"}).value().text.find("state=online") !=
             std::string::npos;
    };
    while (!connected()) std::this_thread::sleep_for(milliseconds(5));
    const auto store = Open();
    const auto other = Open();
    ASSERT_TRUE(store->Propose("a", "1").ok());
    while (!in_sync()) std::this_thread::sleep_for(milliseconds(5));
    ASSERT_TRUE(replica->TakePort(server_.get()));
    // Still a replica.
    EXPECT_TRUE(NoWayBack(store->Propose("b", "1").status()));
    ASSERT_TRUE(replica->Command({"REPLICAOF", "NO", "ONE"}));
    if (restarted) {
      // With all its data: now only its earlier state shows that it was a replica.
      const auto written = [&] {
        const std::string info = replica->Answer({"INFO", "persistence"}).value().text;
        return info.find("aof_rewrite_in_progress:0") != std::string::npos &&
               info.find("aof_rewrite_scheduled:0") != std::string::npos;
      };
      while (!written()) std::this_thread::sleep_for(milliseconds(5));
      ASSERT_TRUE(replica->Restart(durable));
      ASSERT_EQ(replica->Answer({"EXISTS", RedisJobKey("job")}).value().number, 1);
    }
    const auto refused = other->Read("a");
    EXPECT_TRUE(NoWayBack(refused.status()));
    EXPECT_TRUE(NoWayBack(other->Propose("b", "1").status()));
    EXPECT_TRUE(NoWayBack(store->Read("a").status()));
  }
}

TEST_F(RedisStoreTest, AServerThatBecameAReplicaInBetweenIsRefused) {
  StartServer();
  if (server_ == nullptr) return;
  const auto other = RedisServer::Start();
  const auto store = Open();
  const auto idle = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  ASSERT_TRUE(server_->Command({"REPLICAOF", "127.0.0.1", Format("{}", other->port())}));
  EXPECT_TRUE(NoWayBack(store->Propose("b", "1").status()));
  // As sentinels do: the same process, and no longer a replica when the connection is made again.
  while (server_->Answer({"INFO", "replication"}).value().text.find("link_status:up") ==
         std::string::npos) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  ASSERT_TRUE(server_->Command({"REPLICAOF", "NO", "ONE"}));
  const auto late = Open();  // as if the nonce had been the same
  ASSERT_TRUE(server_->Command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}));
  const auto read = idle->Read("a");
  EXPECT_TRUE(NoWayBack(read.status()));
  EXPECT_NE(read.status().message().find("in between"), std::string::npos)
      << read.status().message();
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

}  // namespace
}  // namespace diapason::agree
