#pragma once

// The contract of every store, as tests that a test program includes once. It defines
// MakeStoreUnderTest, and instantiates StoreContract for the kinds of stores that it has. Tests of
// what only one kind does are beside its source.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agree/store.h"
#include "base/text.h"

namespace diapason::agree {

// A store of one kind, as long as a test needs it.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual Result<std::unique_ptr<CellStore>> Open(const StoreOptions& options) = 0;
};
// Null: this kind cannot be tested here.
std::unique_ptr<StoreUnderTest> MakeStoreUnderTest(const std::string& kind);

class StoreContract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    store_ = MakeStoreUnderTest(GetParam());
    if (store_ == nullptr) GTEST_SKIP() << "its server is not installed here";
  }

  Result<std::unique_ptr<CellStore>> TryOpen(const std::string& job = "job") {
    StoreOptions options;
    options.job = job;
    options.limit = std::chrono::milliseconds(120000);  // never reached, however slow this machine
    return store_->Open(options);
  }
  std::unique_ptr<CellStore> Open(const std::string& job = "job") {
    auto store = TryOpen(job);
    if (!store.ok()) ADD_FAILURE() << store.status().message();
    return store.ok() ? std::move(store).value() : nullptr;
  }

  std::unique_ptr<StoreUnderTest> store_;
};

TEST_P(StoreContract, TheFirstValueStandsForEverybody) {
  const auto one = Open();
  const auto two = Open();
  EXPECT_FALSE(one->Read("a").value().has_value());
  EXPECT_EQ(one->Propose("a", "1").value(), "1");
  EXPECT_EQ(two->Propose("a", "2").value(), "1");
  EXPECT_EQ(one->Propose("a", "3").value(), "1");
  EXPECT_EQ(two->Read("a").value(), "1");
  EXPECT_FALSE(two->Read("b").value().has_value());
  EXPECT_TRUE(one->Mine());
  EXPECT_GE(one->Fullness(), 0);
  EXPECT_LE(one->Fullness(), 1);
  EXPECT_FALSE(one->Describe().empty());
}

TEST_P(StoreContract, ValuesComeBackAsTheyWere) {
  const auto store = Open();
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const std::vector<std::string> values = {"", "\n", all, std::string(1 << 20, '\0'), "x\r\n$3"};
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(store->Propose(Format("k{}", i), values[i]).value(), values[i]);
    EXPECT_EQ(store->Read(Format("k{}", i)).value(), values[i]);
  }
}

TEST_P(StoreContract, OddKeysAndLargeValuesAreRefused) {
  const auto store = Open();
  for (const std::string& key :
       {std::string(), std::string("a/b"), std::string(".."), std::string(".a"), std::string("a b"),
        std::string("a*"), std::string("a\0b", 3), std::string(kLongestKey + 1, 'k'),
        std::string("\xc3\xa4"), std::string("a:b")}) {
    EXPECT_FALSE(store->Propose(key, "v").ok()) << key;
    EXPECT_FALSE(store->Read(key).ok()) << key;
  }
  const std::string longest(kLongestKey, 'k');
  EXPECT_EQ(store->Propose(longest, "v").value(), "v");
  EXPECT_EQ(store->Read(longest).value(), "v");
  EXPECT_FALSE(store->Propose("large", std::string(kLongestValue + 1, 'v')).ok());
  EXPECT_FALSE(store->Read("large").value().has_value());
  for (const std::string& job : {std::string(), std::string("../x"), std::string("a/b"),
                                 std::string(".x"), std::string(300, 'x'), std::string("}")}) {
    EXPECT_FALSE(TryOpen(job).ok()) << job;
  }
}

TEST_P(StoreContract, JobsDoNotSeeEachOther) {
  const auto one = Open("one");
  const auto two = Open("two");
  EXPECT_EQ(one->Propose("a", "1").value(), "1");
  EXPECT_FALSE(two->Read("a").value().has_value());
  EXPECT_EQ(two->Propose("a", "2").value(), "2");
  EXPECT_EQ(one->Read("a").value(), "1");
}

TEST_P(StoreContract, ThreadsOfOneStoreAgree) {
  const auto store = Open();
  constexpr int kThreads = 8;
  constexpr int kKeys = 60;
  std::vector<std::vector<std::string>> got(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kKeys; ++i) {
        const auto stands = store->Propose(Format("k{}", i), Format("by {}", t));
        got[static_cast<size_t>(t)].push_back(stands.ok() ? stands.value()
                                                          : stands.status().message());
        const auto read = store->Read(Format("k{}", i));
        if (!read.ok() || read.value() != got[static_cast<size_t>(t)].back()) {
          got[static_cast<size_t>(t)].emplace_back("read something else");
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : got) EXPECT_EQ(one, got[0]);
  for (const auto& value : got[0]) EXPECT_TRUE(value.starts_with("by ")) << value;
}

// Each child opens the store itself, proposes, and hands back a digest of all that stood.
TEST_P(StoreContract, ProcessesAgreeAlsoOnWhoMakesTheStore) {
  constexpr int kChildren = 6;
  constexpr int kKeys = 60;
  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  std::vector<pid_t> children;
  for (int c = 0; c < kChildren; ++c) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      std::string all;
      {
        auto store = TryOpen();
        for (int i = 0; i < kKeys && store.ok(); ++i) {
          const auto stands = store.value()->Propose(Format("k{}", i), Format("{},", c));
          all += stands.ok() ? stands.value() : stands.status().message();
        }
        all.resize(kKeys * 2, '?');
        static_cast<void>(!::write(pipes[1], all.data(), all.size()));
        // Until all are done: the last process to leave removes the store.
        char wait = 0;
        static_cast<void>(!::read(pipes[0], &wait, 0));
        for (int i = 0; i < 5000 && store.ok(); ++i) {
          const auto all_done = store.value()->Read("done");
          if (!all_done.ok() || all_done.value()) break;
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      }
      ::_exit(0);
    }
    children.push_back(pid);
  }
  std::vector<std::string> got;
  for (int c = 0; c < kChildren; ++c) {
    std::string all(kKeys * 2, ' ');
    size_t have = 0;
    while (have < all.size()) {
      const ssize_t n = ::read(pipes[0], all.data() + have, all.size() - have);
      ASSERT_GT(n, 0);
      have += static_cast<size_t>(n);
    }
    got.push_back(all);
  }
  EXPECT_EQ(Open()->Propose("done", "yes").value(), "yes");
  for (const pid_t pid : children) ::waitpid(pid, nullptr, 0);
  ::close(pipes[0]);
  ::close(pipes[1]);
  for (const std::string& one : got) EXPECT_EQ(one, got[0]);
  EXPECT_EQ(got[0].find('?'), std::string::npos) << got[0];
}

TEST_P(StoreContract, AForkedChildIsRefusedAndDoesNoHarm) {
  auto store = Open();
  ASSERT_EQ(store->Propose("a", "1").value(), "1");
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool refused = !store->Mine() && !store->Propose("b", "2").ok() && !store->Read("a").ok();
    store->Forget("");
    store.reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(store->Read("a").value(), "1");
  EXPECT_EQ(store->Propose("c", "3").value(), "3");
  // A process that opens it now finds the same store: the child has neither removed nor unlocked
  // it.
  EXPECT_EQ(Open()->Read("a").value(), "1");
}

// The child is stopped at a moment of the proposal that differs from child to child.
TEST_P(StoreContract, AProposerKilledAnywhereLeavesAllOrNothing) {
  const auto store = Open();
  const std::string value(200000, 'v');
  for (int i = 0; i < 30; ++i) {
    const std::string key = Format("k{}", i);
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto own = TryOpen();
      if (!own.ok()) ::_exit(1);
      static_cast<void>(!::write(ready[1], "r", 1));
      static_cast<void>(own.value()->Propose(key, value).ok());
      ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    std::this_thread::sleep_for(std::chrono::microseconds(i * 40));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    const auto read = store->Read(key);
    ASSERT_TRUE(read.ok()) << read.status().message();
    // A server may still process a request of the dead process: the cell may be written later.
    const auto stands = store->Propose(key, "mine");
    ASSERT_TRUE(stands.ok()) << stands.status().message();
    EXPECT_TRUE(stands.value() == value || (stands.value() == "mine" && !read.value()));
    EXPECT_TRUE(!read.value() || *read.value() == value);
    EXPECT_TRUE(store->Read(key).value() == stands.value());
  }
}

TEST_P(StoreContract, SeveralCellsAreReadAtOnce) {
  const auto store = Open();
  std::vector<std::string> keys;
  for (int i = 0; i < 1500; ++i) keys.push_back(Format("k{}", i));
  for (int i = 0; i < 1500; i += 7) {
    ASSERT_TRUE(store->Propose(keys[static_cast<size_t>(i)], Format("v{}", i)).ok());
  }
  const auto cells = store->ReadMany(keys);
  ASSERT_TRUE(cells.ok()) << cells.status().message();
  ASSERT_EQ(cells.value().size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::optional<std::string>& cell = cells.value()[i];
    EXPECT_EQ(cell, i % 7 == 0 ? std::optional<std::string>(Format("v{}", i)) : std::nullopt);
  }
  EXPECT_TRUE(store->ReadMany({}).value().empty());
  EXPECT_FALSE(store->ReadMany({"a", "a/b"}).ok());
}

TEST_P(StoreContract, ForgettingAPrefixLeavesTheRest) {
  const auto store = Open();
  ASSERT_TRUE(store->Propose("c1.a", "1").ok());
  ASSERT_TRUE(store->Propose("c2.a", "2").ok());
  store->Forget("c1.");
  EXPECT_EQ(store->Read("c2.a").value(), "2");
  EXPECT_EQ(store->Propose("c3.a", "3").value(), "3");
}

}  // namespace diapason::agree
