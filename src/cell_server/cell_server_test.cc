// The store at tcp://: client and server together.
#include "cell_server/cell_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "agree/store_contract.h"
#include "agree/stores.h"
#include "base/file.h"
#include "cell_server/testing.h"

namespace diapason::agree {
namespace {

class TcpStoreUnderTest : public StoreUnderTest {
 public:
  Result<std::unique_ptr<CellStore>> Open(const StoreOptions& given) override {
    StoreOptions options = given;
    options.where = server_.Url();
    options.secret = cell_server::kTestSecret;
    return OpenStore(options);
  }

 private:
  cell_server::ServerProcess server_;
};

INSTANTIATE_TEST_SUITE_P(, StoreContract, testing::Values("tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace

std::unique_ptr<StoreUnderTest> MakeStoreUnderTest(const std::string& /*kind*/) {
  return std::make_unique<TcpStoreUnderTest>();
}

}  // namespace diapason::agree

namespace diapason::cell_server {
namespace {

using agree::CellStore;
using agree::NoRoom;
using agree::Retryable;
using agree::StoreOptions;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// For what cannot succeed.
Deadline Soon() { return steady_clock::now() + milliseconds(200); }
Deadline Enough() { return steady_clock::now() + std::chrono::minutes(2); }

bool IsLost(const Status& status) { return !status.ok() && !Retryable(status) && !NoRoom(status); }

Result<std::unique_ptr<CellStore>> TryOpen(const ServerProcess& server, const std::string& job,
                                           bool guest = false,
                                           const std::string& secret = kTestSecret) {
  StoreOptions options;
  options.where = server.Url();
  options.job = job;
  options.secret = secret;
  options.existing_only = guest;
  options.limit = milliseconds(120000);
  return agree::OpenStore(options);
}
std::unique_ptr<CellStore> Open(const ServerProcess& server, const std::string& job = "job") {
  Result<std::unique_ptr<CellStore>> store = TryOpen(server, job);
  EXPECT_TRUE(store.ok()) << store.status().message();
  return store.ok() ? std::move(store).value() : nullptr;
}

TEST(TcpStore, ARestartedServerHasEverythingThatWasAcknowledged) {
  ServerProcess server;
  const auto one = Open(server);
  const auto two = Open(server);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(one->Propose(Format("k{}", i), "v").value(), "v");
  server.Restart();
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(two->Propose(Format("k{}", i), "other").value(), "v");
    ASSERT_EQ(one->Read(Format("k{}", i)).value(), "v");
  }
  EXPECT_FALSE(one->Read("k50").value().has_value());
}

TEST(TcpStore, AServerThatLostItsCellsIsLostForEver) {
  ServerProcess server(false);
  const auto store = Open(server);
  ASSERT_TRUE(store->Propose("a", "1").ok());
  server.Restart();
  const auto read = store->Read("a", Enough());
  ASSERT_FALSE(read.ok());
  EXPECT_TRUE(IsLost(read.status())) << read.status().message();
  EXPECT_NE(read.status().message().find("nonce"), std::string::npos) << read.status().message();
  // Also when another rank has opened the job again in the meantime.
  const auto other = Open(server);
  ASSERT_TRUE(other->Propose("a", "2").ok());
  EXPECT_TRUE(IsLost(store->Read("a", Enough()).status()));
  EXPECT_TRUE(IsLost(store->Propose("b", "1", Enough()).status()));
}

TEST(TcpStore, AnOlderCopyOfTheFileIsNoticed) {
  ServerProcess server;
  const auto store = Open(server);
  ASSERT_TRUE(store->Propose("a", "1").ok());
  const std::string older = ReadFile(server.file(), 1 << 20).value();
  ASSERT_TRUE(store->Propose("b", "1").ok());
  server.Kill();
  ASSERT_TRUE(WriteFileAtomically(server.file(), older).ok());
  std::filesystem::permissions(server.file(), std::filesystem::perms(0600));
  server.Start();
  const auto read = store->Read("a", Enough());
  EXPECT_TRUE(IsLost(read.status())) << read.status().message();
  EXPECT_NE(read.status().message().find("writes"), std::string::npos) << read.status().message();
}

TEST(TcpStore, AnUnreachableServerIsRetryable) {
  ServerProcess server;
  const auto store = Open(server);
  ASSERT_TRUE(store->Propose("a", "1").ok());
  server.Stop();
  const auto began = steady_clock::now();
  const auto read = store->Read("a", Soon());
  EXPECT_TRUE(Retryable(read.status())) << read.status().message();
  EXPECT_LT(steady_clock::now() - began, std::chrono::minutes(1));
  EXPECT_TRUE(Retryable(store->Propose("b", "1", Soon()).status()));
  store->KeepAlive(Soon());
  store->Done("c", 1, Soon());
  server.GoOn();
  EXPECT_EQ(store->Read("a", Enough()).value(), "1");
  server.Kill();
  EXPECT_TRUE(Retryable(store->Read("a", Soon()).status()));
  server.Start();
  EXPECT_EQ(store->Read("a", Enough()).value(), "1");
}

// Whatever a rank was told before the server was killed stands afterwards.
TEST(TcpStore, KilledInTheMiddleOfWrites) {
  ServerProcess server;
  std::atomic<bool> stop{false};
  std::vector<std::vector<std::string>> told(4);
  std::vector<std::thread> ranks;
  for (size_t rank = 0; rank < told.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      const auto store = Open(server);
      for (int i = 0; store != nullptr && !stop.load(); ++i) {
        const auto stands = store->Propose(Format("k{}", i), Format("by {}", rank), Enough());
        ASSERT_TRUE(stands.ok()) << stands.status().message();
        told[rank].push_back(stands.value());
      }
    });
  }
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(milliseconds(5 + 7 * i % 30));
    server.Restart();
  }
  stop.store(true);
  for (std::thread& rank : ranks) rank.join();
  for (size_t rank = 1; rank < told.size(); ++rank) {
    const size_t both = std::min(told[0].size(), told[rank].size());
    EXPECT_GT(both, 0U);
    for (size_t i = 0; i < both; ++i) ASSERT_EQ(told[0][i], told[rank][i]) << i;
  }
}

TEST(TcpStore, TheLastClientThatLeavesRemovesTheJob) {
  ServerProcess server;
  auto one = Open(server);
  auto two = Open(server);
  ASSERT_TRUE(one->Propose("a", "1").ok());
  one.reset();
  ASSERT_EQ(two->Read("a").value(), "1");
  // Members are known after a restart, too: the job stays for those that have not come back yet.
  const auto three = Open(server);
  server.Restart();
  two->Leave(Enough());
  const auto still = three->Read("a", Enough());
  ASSERT_TRUE(still.ok()) << still.status().message();
  EXPECT_EQ(still.value(), "1");
  three->Leave(Enough());
  EXPECT_EQ(TryOpen(server, "job", true).status().code(), ErrorCode::kNotFound);
  const auto again = Open(server);
  const auto anew = again->Read("a", Enough());
  ASSERT_TRUE(anew.ok()) << anew.status().message();
  EXPECT_FALSE(anew.value().has_value());
}

TEST(TcpStore, AGuestOpensOnlyWhatExists) {
  ServerProcess server;
  EXPECT_EQ(TryOpen(server, "job", true).status().code(), ErrorCode::kNotFound);
  auto rank = Open(server);
  auto guest = TryOpen(server, "job", true);
  ASSERT_TRUE(guest.ok()) << guest.status().message();
  EXPECT_EQ(guest.value()->Propose("a", "1").value(), "1");
  guest.value()->Forget("");
  guest.value()->Leave(Enough());
  guest.value().reset();
  EXPECT_EQ(rank->Read("a").value(), "1");
}

TEST(TcpStore, CellsOfACommunicatorGoWhenAllItsRanksAreDone) {
  ServerProcess server;
  const auto one = Open(server);
  const auto two = Open(server);
  ASSERT_TRUE(one->Propose("c1.a", "1").ok());
  ASSERT_TRUE(one->Propose("c2.a", "1").ok());
  one->Done("c1.", 2, Enough());
  EXPECT_EQ(one->Read("c1.a").value(), "1");
  two->Done("c1.", 2, Enough());
  EXPECT_FALSE(one->Read("c1.a").value().has_value());
  EXPECT_EQ(one->Read("c2.a").value(), "1");
}

TEST(TcpStore, AFullServerRefusesAndKeepsWhatItHas) {
  ServerProcess server;
  server.options().stored = 100000;
  server.Restart();
  const auto store = Open(server);
  ASSERT_TRUE(store->Propose("a", std::string(40000, 'v')).ok());
  EXPECT_TRUE(NoRoom(store->Propose("b", std::string(90000, 'v')).status()));
  EXPECT_FALSE(store->Read("b").value().has_value());
  EXPECT_EQ(store->Read("a").value()->size(), 40000U);
  EXPECT_GT(store->Fullness(), 0.3);
  EXPECT_LT(store->Fullness(), 0.6);
}

TEST(TcpStore, NeedsTheSecret) {
  ServerProcess server;
  StoreOptions options;
  options.where = server.Url();
  options.job = "job";
  options.limit = milliseconds(100);
  EXPECT_NE(agree::OpenStore(options).status().message().find("DIAPASON_SECRET_FILE"),
            std::string::npos);
  for (const char* where : {"tcp://", "tcp://:1", "tcp://h:0", "tcp://h:x", "tcp://a@h",
                            "tcp://h/1", "tcp://::1", "tcp://h?x"}) {
    options.where = where;
    EXPECT_EQ(agree::OpenStore(options).status().code(), ErrorCode::kInvalid) << where;
  }
}

// Without another attempt, which would be retryable; and both ends say so.
TEST(TcpStore, AWrongSecretIsRefused) {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  ServerProcess server;
  server.options().log = [&log](const std::string& line) {
    std::ofstream(log, std::ios::app) << line << std::endl;
  };
  server.Restart();
  StoreOptions options;
  options.where = server.Url();
  options.job = "job";
  options.limit = std::chrono::minutes(1);
  options.secret = "another secret, which is wrong";
  const Status refused = agree::OpenStore(options).status();
  EXPECT_EQ(refused.code(), ErrorCode::kUnavailable);
  for (const std::string& part :
       {server.Url(), std::string("refused the secret"), std::string("DIAPASON_SECRET_FILE")}) {
    EXPECT_NE(refused.message().find(part), std::string::npos) << refused.message();
  }
  EXPECT_EQ(refused.message().find(options.secret), std::string::npos);
  // Written before the client was told.
  const std::string said = ReadFile(log, 1 << 20).value();
  EXPECT_NE(said.find("a connection from 127.0.0.1"), std::string::npos) << said;
  EXPECT_NE(said.find("its secret is another one"), std::string::npos) << said;
  EXPECT_EQ(said.find(options.secret), std::string::npos);
}

TEST(TcpStore, AServerThatDoesNotKnowTheSecretIsNotUsed) {
  ServerProcess server;
  const auto store = Open(server);
  ASSERT_TRUE(store->Propose("a", "1").ok());
  server.Kill();
  server.options().secret = "the secret of another program";
  server.Start();
  EXPECT_TRUE(Retryable(store->Read("a", Soon()).status()));
  server.Kill();
  server.options().secret = kTestSecret;
  server.Start();
  EXPECT_EQ(store->Read("a", Enough()).value(), "1");
}

// More than the file may have; the limit goes away again.
TEST(TcpStore, AFileThatCannotBeWrittenMakesRanksWait) {
  ServerProcess server;
  const auto store = Open(server);
  ASSERT_TRUE(store->Propose("a", "1").ok());
  rlimit limit{20000, RLIM_INFINITY};
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  const auto refused = store->Propose("b", std::string(50000, 'v'), Soon());
  EXPECT_TRUE(Retryable(refused.status())) << refused.status().message();
  EXPECT_FALSE(store->Read("b", Enough()).value().has_value());
  EXPECT_EQ(store->Read("a", Enough()).value(), "1");
  EXPECT_EQ(store->Propose("c", "2", Enough()).value(), "2");
  limit.rlim_cur = RLIM_INFINITY;
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  EXPECT_EQ(store->Propose("b", "3", Enough()).value(), "3");
  server.Restart();
  EXPECT_EQ(store->Read("b", Enough()).value(), "3");
  EXPECT_EQ(store->Read("c", Enough()).value(), "2");
}

TEST(TcpStore, TheFileDoesNotGrowWithoutABound) {
  ServerProcess server;
  const auto store = Open(server);
  const std::string value(size_t{1} << 20U, 'v');
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(store->Propose(Format("c{}.a", i), value, Enough()).ok());
    store->Done(Format("c{}.", i), 1, Enough());
  }
  ASSERT_TRUE(store->Propose("last", "1", Enough()).ok());
  EXPECT_LT(std::filesystem::file_size(server.file()), uint64_t{24} << 20U);
  server.Restart();
  EXPECT_EQ(store->Read("last", Enough()).value(), "1");
  EXPECT_FALSE(store->Read("c0.a", Enough()).value().has_value());
}

}  // namespace
}  // namespace diapason::cell_server
