#include "agree/store.h"

#include <gtest/gtest.h>

#include "agree/store_contract.h"
#include "agree/stores.h"
#include "agree/testing.h"

namespace diapason::agree {
namespace {

class LocalStore : public StoreUnderTest {
 public:
  LocalStore(std::string kind, std::unique_ptr<RedisServer> server)
      : kind_(std::move(kind)), server_(std::move(server)) {}
  Result<std::unique_ptr<CellStore>> Open(const StoreOptions& given) override {
    StoreOptions options = given;
    options.where = kind_ == "shm"    ? "shm"
                    : kind_ == "file" ? "file:" + folder_.path()
                                      : server_->Url();
    // A job that OpenStore refuses is not opened anywhere.
    if (kind_ == "shm" && options.job.find_first_of("/.}") == std::string::npos &&
        !options.job.empty() && options.job.size() <= kLongestKey) {
      return OpenShmStore(options, {folder_.path(), uint64_t{8} << 20});
    }
    return OpenStore(options);
  }

 private:
  const std::string kind_;
  TemporaryFolder folder_;
  std::unique_ptr<RedisServer> server_;
};

INSTANTIATE_TEST_SUITE_P(, StoreContract, testing::Values("shm", "file", "redis"),
                         [](const auto& test) { return test.param; });

TEST(OpenStore, UnknownKindsAreRefusedWithoutShowingPasswords) {
  for (const char* where : {"", "shmem", "file", "redis:/x", "mysql://me:secret@host", "/tmp/x"}) {
    StoreOptions options;
    options.where = where;
    options.job = "job";
    const auto store = OpenStore(options);
    ASSERT_FALSE(store.ok()) << where;
    EXPECT_EQ(store.status().message().find("secret"), std::string::npos);
    EXPECT_NE(store.status().message().find("known are"), std::string::npos) << where;
  }
  StoreOptions options;
  options.where = "rediss://:secret@host";
  options.job = "job";
  const auto tls = OpenStore(options);
  ASSERT_FALSE(tls.ok());
  EXPECT_NE(tls.status().message().find("stunnel"), std::string::npos);
  EXPECT_EQ(tls.status().message().find("secret"), std::string::npos);
}

}  // namespace

std::unique_ptr<StoreUnderTest> MakeStoreUnderTest(const std::string& kind) {
  std::unique_ptr<RedisServer> server;
  if (kind == "redis" && (server = RedisServer::Start()) == nullptr) return nullptr;
  return std::make_unique<LocalStore>(kind, std::move(server));
}

}  // namespace diapason::agree
