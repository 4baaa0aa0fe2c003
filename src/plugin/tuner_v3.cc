// Tuner API v3: NCCL 2.22 and 2.23. The first with a cost table; regBuff is not told.
#include "plugin/engine.h"

namespace diapason::plugin {
namespace {

int Init(size_t ranks, size_t nodes, abi::Logger logger, void** context) noexcept {
  if (context == nullptr) return abi::kSuccess;
  Birth birth;
  birth.api = 3;
  birth.shape = {static_cast<int64_t>(nodes), static_cast<int64_t>(ranks)};
  birth.logger = logger;
  *context = Engine::Create(birth);
  return abi::kSuccess;
}

int GetCollInfo(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                int algorithms, int protocols, int* channels) noexcept {
  auto* engine = static_cast<Engine*>(context);
  if (engine != nullptr) {
    engine->DecideByTable(collective, bytes, pipe_ops, policy::kAny,
                          {reinterpret_cast<float*>(table), algorithms, protocols}, channels);
  }
  return abi::kSuccess;
}

int Destroy(void* context) noexcept {
  Engine::Destroy(static_cast<Engine*>(context));
  return abi::kSuccess;
}

}  // namespace
}  // namespace diapason::plugin

DIAPASON_EXPORT const diapason::plugin::abi::TunerV3 ncclTunerPlugin_v3;
const diapason::plugin::abi::TunerV3 ncclTunerPlugin_v3 = {
    "diapason", diapason::plugin::Init, diapason::plugin::GetCollInfo, diapason::plugin::Destroy};
