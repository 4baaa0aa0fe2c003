#include "agree/token.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "agree/stores.h"
#include "agree/testing.h"

namespace diapason::agree {
namespace {

class TokenTest : public testing::Test {
 protected:
  std::unique_ptr<CellStore> Open() {
    StoreOptions options;
    options.job = "token";
    auto store = OpenShmStore(options, {folder_.path(), uint64_t{4} << 20});
    EXPECT_TRUE(store.ok()) << store.status().message();
    return std::move(store).value();
  }
  TemporaryFolder folder_;
};

TEST_F(TokenTest, GoesFromOneToTheOther) {
  const auto store = Open();
  Token a(store.get(), "a");
  Token b(store.get(), "b");
  EXPECT_TRUE(a.TryTake().value());
  EXPECT_TRUE(a.TryTake().value());
  EXPECT_FALSE(b.TryTake().value());
  EXPECT_FALSE(b.held());
  EXPECT_TRUE(b.Release().ok());  // not held: no effect
  EXPECT_FALSE(b.TryTake().value());
  EXPECT_TRUE(a.Release().ok());
  EXPECT_FALSE(a.held());
  EXPECT_TRUE(b.TryTake().value());
  EXPECT_FALSE(a.TryTake().value());
  EXPECT_TRUE(b.Release().ok());
  EXPECT_TRUE(a.TryTake().value());
}

TEST_F(TokenTest, OneWhoComesLateCatchesUpInBoundedSteps) {
  const auto store = Open();
  Token a(store.get(), "a");
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(a.TryTake().value());
    ASSERT_TRUE(a.Release().ok());
  }
  Token late(store.get(), "late");
  int calls = 1;
  while (!late.TryTake().value()) ++calls;
  EXPECT_GT(calls, 3);
  EXPECT_LT(calls, 100);
}

TEST_F(TokenTest, NeverTwoAtOnce) {
  std::atomic<int> holders = 0;
  std::atomic<int> turns = 0;
  std::atomic<bool> twice = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const auto store = Open();
      Token token(store.get(), Format("t{}", t));
      for (int i = 0; i < 3000; ++i) {
        if (!token.TryTake().value()) continue;
        if (holders.fetch_add(1) != 0) twice = true;
        ++turns;
        holders.fetch_sub(1);
        EXPECT_TRUE(token.Release().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(twice);
  EXPECT_GT(turns, 100);
}

}  // namespace
}  // namespace diapason::agree
