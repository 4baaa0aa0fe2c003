#pragma once

// Ranks that join over a store in shared memory, for tests.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "agree/join.h"
#include "agree/stores.h"
#include "agree/testing.h"

namespace diapason::agree {

using std::chrono::milliseconds;

// Not reached where all ranks come. `./dev mutants`, which breaks joining, sets a shorter one.
inline milliseconds EnoughTime() {
  const char* const text = std::getenv("DIAPASON_TEST_ENOUGH_MS");
  return milliseconds(text != nullptr ? std::atoi(text) : 120000);
}

class JoinTest : public testing::Test {
 protected:
  std::unique_ptr<CellStore> Open() {
    StoreOptions options;
    options.job = "join";
    auto store = OpenShmStore(options, {folder_.path(), uint64_t{8} << 20});
    EXPECT_TRUE(store.ok()) << store.status().message();
    return std::move(store).value();
  }
  static JoinRequest Request(int rank, int ranks) {
    JoinRequest request;
    request.comm_id = 0x1f;
    request.rank = rank;
    request.ranks = ranks;
    request.alike = "build=1 library=2.28.9 profiler=5";
    request.offer = Format("offer of {}", rank);
    request.limit = EnoughTime();
    return request;
  }
  // Each on its own thread, and with its own store.
  std::vector<JoinOutcome> JoinAll(const std::vector<JoinRequest>& requests) {
    std::vector<JoinOutcome> outcomes(requests.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < requests.size(); ++i) {
      threads.emplace_back([&, i] {
        const auto store = Open();
        auto outcome = Join(store.get(), requests[i]);
        if (!outcome.ok()) ADD_FAILURE() << outcome.status().message();
        if (outcome.ok()) outcomes[i] = std::move(outcome).value();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }
  std::vector<JoinRequest> Ranks(int ranks) {
    std::vector<JoinRequest> requests;
    for (int rank = 0; rank < ranks; ++rank) requests.push_back(Request(rank, ranks));
    return requests;
  }
  TemporaryFolder folder_;
};

}  // namespace diapason::agree
