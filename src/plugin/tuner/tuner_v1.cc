// Tuner API v1: NCCL 2.19 and 2.20, RCCL 2.20. It has no context: all communicators of the process
// share one engine, and a question does not say which of them asks.
#include <atomic>

#include "base/mutex_lock.h"
#include "plugin/abi/fork_safe.h"
#include "plugin/tuner/engine.h"

namespace diapason::plugin {
namespace {

int g_communicators = 0;  // guarded by Locks().v1
std::atomic<Engine*> g_engine{nullptr};

int Init(size_t ranks, size_t nodes, abi::Logger logger) noexcept {
  const Shape shape{static_cast<int64_t>(nodes), static_cast<int64_t>(ranks)};
  const MutexLock lock(&Locks().v1);
  if (g_communicators++ == 0) {
    CommInit init;
    init.api = 1;
    init.shape = shape;
    init.logger = logger;
    int status = abi::kSuccess;
    g_engine.store(Engine::Create(init, &status), std::memory_order_release);
  } else if (Engine* engine = g_engine.load(std::memory_order_relaxed); engine != nullptr) {
    engine->SharedWith(shape);
  }
  return abi::kSuccess;
}

int GetCollInfo(int collective, size_t bytes, int collnet, int nvls, int pipe_ops, int* algorithm,
                int* protocol, int* channels) noexcept {
  Engine* engine = g_engine.load(std::memory_order_acquire);
  if (engine != nullptr) {
    engine->DecideByPair(collective, bytes, collnet, nvls, pipe_ops, algorithm, protocol, channels);
  }
  return abi::kSuccess;
}

int Destroy() noexcept {
  Engine* last = nullptr;
  {
    const MutexLock lock(&Locks().v1);
    if (g_communicators > 0 && --g_communicators == 0) last = g_engine.exchange(nullptr);
  }
  Engine::Destroy(last);
  return abi::kSuccess;
}

}  // namespace

DIAPASON_EXPORT const abi::TunerV1 ncclTunerPlugin_v1;
const abi::TunerV1 ncclTunerPlugin_v1 = {"diapason", Init, GetCollInfo, Destroy};

}  // namespace diapason::plugin
