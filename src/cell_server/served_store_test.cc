#include "cell_server/served_store.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "agree/store.h"
#include "base/text.h"
#include "cell_server/testing.h"

namespace diapason::cell_server {
namespace {

Result<std::unique_ptr<agree::CellStore>> Open(const ServedStore& served, int limit_ms = 120000) {
  agree::StoreOptions options;
  options.where = served.url();
  options.job = "job";
  options.secret = kTestSecret;
  options.limit = std::chrono::milliseconds(limit_ms);
  return agree::OpenStore(options);
}

// The processes that have this file open.
std::vector<pid_t> UsersOf(const std::string& path) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    uint64_t pid = 0;
    if (!ParseUnsigned(entry.path().filename().string(), &pid)) continue;
    std::error_code error;
    for (const auto& file : std::filesystem::directory_iterator(entry.path() / "fd", error)) {
      if (std::filesystem::read_symlink(file.path(), error) == path) {
        found.push_back(static_cast<pid_t>(pid));
      }
    }
  }
  return found;
}

TEST(ServedStore, ServesAsLongAsItLives) {
  std::string url;
  {
    const auto served = ServedStore::Start({"127.0.0.1", 0, kTestSecret});
    ASSERT_TRUE(served.ok()) << served.status().message();
    const auto store = Open(*served.value());
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_EQ(store.value()->Propose("a", "1").value(), "1");
    url = served.value()->url();
  }
  agree::StoreOptions options;
  options.where = url;
  options.job = "job";
  options.secret = kTestSecret;
  options.limit = std::chrono::milliseconds(100);
  EXPECT_FALSE(agree::OpenStore(options).ok());
}

TEST(ServedStore, AKilledServerIsStartedAgainWithItsCells) {
  const TemporaryFolder folder;
  const char* const before = std::getenv("TMPDIR");
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  const auto served = ServedStore::Start({"localhost", 0, kTestSecret});
  if (before != nullptr) ::setenv("TMPDIR", before, 1);
  if (before == nullptr) ::unsetenv("TMPDIR");
  ASSERT_TRUE(served.ok()) << served.status().message();
  const auto store = Open(*served.value());
  ASSERT_TRUE(store.ok()) << store.status().message();
  ASSERT_EQ(store.value()->Propose("a", "1").value(), "1");
  const auto own = std::filesystem::directory_iterator(folder.path())->path();
  const std::vector<pid_t> servers = UsersOf((own / "cells").string());
  ASSERT_EQ(servers.size(), 1U);
  ASSERT_EQ(::kill(servers[0], SIGKILL), 0);
  EXPECT_EQ(store.value()->Read("a").value(), "1");
  EXPECT_EQ(store.value()->Propose("b", "2").value(), "2");
}

TEST(ServedStore, KnowsWhichAddressesAreItsOwn) {
  EXPECT_TRUE(IsThisHost("127.0.0.1"));
  EXPECT_TRUE(IsThisHost("localhost"));
  EXPECT_FALSE(IsThisHost("192.0.2.7"));
  EXPECT_FALSE(IsThisHost("no.such.host.invalid"));
  EXPECT_EQ(ServedStore::Start({"192.0.2.7", 0, kTestSecret}).status().code(),
            ErrorCode::kUnavailable);
  const auto first = ServedStore::Start({"127.0.0.1", 0, kTestSecret});
  ASSERT_TRUE(first.ok());
  const agree::TcpAddress address = agree::ParseTcpAddress(first.value()->url()).value();
  EXPECT_EQ(ServedStore::Start({"127.0.0.1", address.port, kTestSecret}).status().code(),
            ErrorCode::kUnavailable);
  EXPECT_FALSE(HostForOthers().empty());
}

}  // namespace
}  // namespace diapason::cell_server
