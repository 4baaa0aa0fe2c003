#include "learning_case.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

#include "base/text.h"
#include "plugin/abi/profiler_abi.h"

namespace diapason::bench {
namespace {

namespace abi = plugin::abi;

constexpr int kAllReduce = 4;
constexpr int kRanks = 2;
// Past the epochs in which runs are still watched.
constexpr int kCallsEach = 48;

int g_mask = 0;

struct Rank {
  void* profiler = nullptr;
  void* tuner = nullptr;
};

void Start(const abi::ProfilerV5<abi::EventV5>& profiler, const Rank& rank, uint64_t type,
           size_t bytes) {
  abi::EventV5 event = {};
  event.type = type;
  if (type == abi::kEventCollApi) {
    event.coll_api = {"AllReduce", bytes, "ncclInt8", 0, nullptr, false};
  }
  void* handle = nullptr;
  profiler.start_event(rank.profiler, &handle, &event);
  profiler.stop_event(handle);
}

}  // namespace

void* MakeSettledContext(void* plugin, const tuner_v5* tuner, const std::string& policy,
                         const std::vector<size_t>& sizes) {
  const auto* profiler =
      static_cast<const abi::ProfilerV5<abi::EventV5>*>(dlsym(plugin, "ncclProfiler_v5"));
  if (profiler == nullptr) return nullptr;
  setenv("DIAPASON_POLICY", policy.c_str(), 1);
  setenv("DIAPASON_MODE", "learn", 1);
  setenv("DIAPASON_STORE", "shm", 1);
  setenv("DIAPASON_JOB", Format("bench{}", static_cast<int>(getpid())).c_str(), 1);
  // Nobody reports: what the policy says stays.
  setenv("DIAPASON_REWARD", "report", 1);
  Rank ranks[kRanks];
  std::vector<std::thread> threads;
  for (int number = 0; number < kRanks; ++number) {
    threads.emplace_back([&, number] {
      Rank& rank = ranks[number];
      profiler->init(&rank.profiler, 7, &g_mask, "bench", 1, kRanks, number, nullptr);
      tuner->init(&rank.tuner, 7, kRanks, 1, nullptr, nullptr, nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  unsetenv("DIAPASON_MODE");
  unsetenv("DIAPASON_STORE");
  if ((g_mask & abi::kEventCollApi) == 0) {
    std::fprintf(stderr, "bench decide: the ranks have not come together to learn\n");
    return nullptr;
  }
  for (int i = 0; i < kCallsEach; ++i) {
    for (const size_t bytes : sizes) {
      for (const Rank& rank : ranks) {
        float table[7 * 3];
        for (float& cell : table) cell = 10;
        int channels = 0;
        Start(*profiler, rank, abi::kEventGroupApi, 0);
        Start(*profiler, rank, abi::kEventCollApi, bytes);
        tuner->get_coll_info(rank.tuner, kAllReduce, bytes, 1, reinterpret_cast<float**>(table), 7,
                             3, 0, &channels);
        Start(*profiler, rank, abi::kEventKernelLaunch, 0);
      }
    }
  }
  // The next call is open; questions about it all have one and the same number.
  Start(*profiler, ranks[1], abi::kEventGroupApi, 0);
  Start(*profiler, ranks[1], abi::kEventCollApi, sizes.front());
  return ranks[1].tuner;
}

}  // namespace diapason::bench
