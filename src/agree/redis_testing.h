#pragma once

// A Redis server for the tests of the store over it, and the store of one job there.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agree/redis_link.h"
#include "agree/stores.h"
#include "agree/testing.h"

namespace diapason::agree {

using std::chrono::milliseconds;

class RedisStoreTest : public testing::Test {
 protected:
  void StartServer(std::vector<std::string> options = {}) {
    server_ = RedisServer::Start(std::move(options));
    if (server_ == nullptr) GTEST_SKIP() << "redis-server is not installed here";
  }
  Result<std::unique_ptr<CellStore>> TryOpen(const std::string& who = "",
                                             const std::string& rest = "") const {
    StoreOptions options;
    options.job = "job";
    options.limit = milliseconds(120000);
    return OpenRedisStore(options, server_->Url(who, rest));
  }
  std::unique_ptr<CellStore> Open() const {
    auto store = TryOpen();
    if (!store.ok()) ADD_FAILURE() << store.status().message();
    return store.ok() ? std::move(store).value() : nullptr;
  }
  long long SecondsLeft() { return server_->Answer({"TTL", RedisJobKey("job")}).value().number; }
  // All keys of the server that would stay for ever.
  int KeysWithoutExpiry() {
    int without = 0;
    const auto keys = server_->Answer({"KEYS", "*"});
    if (!keys.ok()) return -1;
    for (const RedisReply& key : keys.value().list) {
      if (server_->Answer({"TTL", key.text}).value().number < 0) ++without;
    }
    return without;
  }
  static Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }
  // For what cannot succeed.
  static Deadline Now() { return std::chrono::steady_clock::now() + milliseconds(100); }
  std::unique_ptr<RedisServer> server_;
};

// Whether an error is permanent.
inline bool NoWayBack(const Status& status) {
  return !status.ok() && !Retryable(status) && !NoRoom(status);
}

}  // namespace diapason::agree
