#pragma once

// Ranks as threads, for the tests of the backend.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/backend.h"

namespace diapason::comm::sim {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

inline constexpr milliseconds kLong{60000};
inline constexpr milliseconds kShort{200};

inline Deadline In(milliseconds time) { return steady_clock::now() + time; }

// One of `ranks` threads, each a rank of the simulated cluster.
inline GroupOptions SimulatedRank(int rank, int ranks, const std::string& cluster = "h100x8") {
  GroupOptions options;
  options.backend = "sim";
  options.cluster = cluster;
  options.rank = rank;
  options.size = ranks;
  options.timeout = kLong;
  options.slow_call = milliseconds(-1);
  return options;
}

struct Wanted {
  std::string cluster = "h100x8";
  uint64_t seed = 1;
  milliseconds timeout = kLong;
  std::string name = "world";
  int port = 1;
};

inline Result<std::unique_ptr<Communicator>> Join(const Wanted& wanted, int rank, int size) {
  GroupOptions options;
  options.cluster = wanted.cluster;
  options.seed = wanted.seed;
  options.master_port = wanted.port;
  Start start;
  start.place.rank = rank;
  start.place.size = size;
  start.name = wanted.name;
  start.timeout = wanted.timeout;
  start.options = &options;
  return FindBackend("sim").value()->Create(start);
}

// Runs `body` on `size` threads, each with its communicator.
inline void OnRanks(const Wanted& wanted, int size,
                    const std::function<void(int rank, Communicator* comm)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Result<std::unique_ptr<Communicator>> comm = Join(wanted, rank, size);
      ASSERT_TRUE(comm.ok()) << comm.status().message();
      body(rank, comm.value().get());
      // All ranks leave together; if the test has broken the world, none waits.
      (void)comm.value()->Run(BarrierCall(), In(kLong));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline std::string Message(const Status& status) { return status.ok() ? "fine" : status.message(); }

}  // namespace diapason::comm::sim
