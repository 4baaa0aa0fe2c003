// Tuner API v4: NCCL 2.24 to 2.27, RCCL 2.27. Adds regBuff.
#include "plugin/engine.h"

namespace diapason::plugin {
namespace {

int Init(size_t ranks, size_t nodes, abi::Logger logger, void** context) noexcept {
  if (context == nullptr) return abi::kSuccess;
  Birth birth;
  birth.api = 4;
  birth.shape = {static_cast<int64_t>(nodes), static_cast<int64_t>(ranks)};
  birth.logger = logger;
  *context = Engine::Create(birth);
  return abi::kSuccess;
}

int GetCollInfo(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                int algorithms, int protocols, int reg_buff, int* channels) noexcept {
  auto* engine = static_cast<Engine*>(context);
  if (engine != nullptr) {
    engine->DecideByTable(collective, bytes, pipe_ops, reg_buff,
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

DIAPASON_EXPORT const diapason::plugin::abi::TunerV4 ncclTunerPlugin_v4;
const diapason::plugin::abi::TunerV4 ncclTunerPlugin_v4 = {
    "diapason", diapason::plugin::Init, diapason::plugin::GetCollInfo, diapason::plugin::Destroy};
