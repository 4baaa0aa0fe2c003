// Memory that runs out in the middle of a request to a store at tcp://.
#include <gtest/gtest.h>

#include "agree/no_memory_testing.h"
#include "cell_server/testing.h"

namespace diapason::cell_server {
namespace {

class TcpNoMemory : public testing::Test {
 protected:
  void SetUp() override {
    agree::StoreOptions options;
    options.where = server_.Url();
    options.job = "job";
    options.secret = kTestSecret;
    options.limit = std::chrono::minutes(2);
    auto store = agree::OpenStore(options);
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
  }
  ServerProcess server_;
  std::unique_ptr<agree::CellStore> store_;
};

TEST_F(TcpNoMemory, ARequestNeverGetsTheReplyToAnother) {
  agree::ExpectNoCellOfAnotherRequest(store_.get(), [] {});
}

TEST_F(TcpNoMemory, NorOneThatHasToConnectFirst) {
  agree::ExpectNoCellOfAnotherRequest(store_.get(), [this] { server_.Restart(); });
}

}  // namespace
}  // namespace diapason::cell_server
