// Memory that runs out in the middle of a request to a Redis server.
#include <gtest/gtest.h>

#include "agree/no_memory_testing.h"
#include "agree/redis_testing.h"

namespace diapason::agree {
namespace {

using RedisNoMemory = RedisStoreTest;

TEST_F(RedisNoMemory, ARequestNeverGetsTheReplyToAnother) {
  StartServer();
  if (server_ == nullptr) return;
  ExpectNoCellOfAnotherRequest(Open().get(), [] {});
}

TEST_F(RedisNoMemory, NorOneThatHasToConnectFirst) {
  StartServer();
  if (server_ == nullptr) return;
  const auto store = TryOpen("", "/3");
  ASSERT_TRUE(store.ok()) << store.status().message();
  ExpectNoCellOfAnotherRequest(store.value().get(), [this] {
    ASSERT_TRUE(server_->Command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}));
  });
}

// The reply comes when the client has given up.
TEST_F(RedisNoMemory, NorALateOne) {
  StartServer();
  if (server_ == nullptr) return;
  RedisAddress address;
  address.host = "127.0.0.1";
  address.port = server_->port();
  RedisLink link(address);
  ASSERT_TRUE(link.Resolve().ok());
  const int failures = ForEveryAllocation([&](int number) {
    if (!link.connected()) {
      EXPECT_TRUE(link.Connect(Soon()).ok());
    }
    server_->Stop();
    const bool failed = FailsAt(number, [&] {
      const Deadline now = std::chrono::steady_clock::now() + milliseconds(5);
      static_cast<void>(link.Ask({"ECHO", "first"}, now).ok());
    });
    server_->GoOn();
    const auto next = link.Ask({"ECHO", "second"}, Soon());
    EXPECT_EQ(next.ok() ? next.value().text : "second", "second") << number;
    return failed;
  });
  EXPECT_GT(failures, 3);
}

// A connection that is open has its user and its database.
TEST_F(RedisNoMemory, AConnectionIsWholeOrClosed) {
  StartServer({"--requirepass", "a password of more than fifteen letters"});
  if (server_ == nullptr) return;
  RedisAddress address;
  address.host = "127.0.0.1";
  address.port = server_->port();
  address.authenticate = true;
  address.password = "a password of more than fifteen letters";
  address.database = 5;
  RedisLink link(address);
  ASSERT_TRUE(link.Resolve().ok());
  ASSERT_TRUE(link.Connect(Soon()).ok());
  ASSERT_TRUE(link.Command({"SET", "where", "here"}, Soon()).ok());
  const int failures = ForEveryAllocation([&](int number) {
    const bool failed = FailsAt(number, [&] { static_cast<void>(link.Connect(Soon()).ok()); });
    if (link.connected()) {
      const auto reply = link.Command({"GET", "where"}, Soon());
      EXPECT_TRUE(reply.ok()) << number << ": " << reply.status().message();
      if (reply.ok()) {
        EXPECT_EQ(reply.value().text, "here") << number;
      }
    }
    return failed;
  });
  EXPECT_GT(failures, 3);
}

}  // namespace
}  // namespace diapason::agree
