// Tuner API v2: NCCL 2.21, RCCL 2.21. No table: the pair is taken as it is answered.
#include "plugin/engine.h"

namespace diapason::plugin {
namespace {

int Init(size_t ranks, size_t nodes, abi::Logger logger, void** context) noexcept {
  if (context == nullptr) return abi::kSuccess;
  Birth birth;
  birth.api = 2;
  birth.shape = {static_cast<int64_t>(nodes), static_cast<int64_t>(ranks)};
  birth.logger = logger;
  *context = Engine::Create(birth);
  return abi::kSuccess;
}

int GetCollInfo(void* context, int collective, size_t bytes, int collnet, int nvls, int pipe_ops,
                int* algorithm, int* protocol, int* channels) noexcept {
  auto* engine = static_cast<Engine*>(context);
  if (engine != nullptr) {
    engine->DecideByPair(collective, bytes, collnet, nvls, pipe_ops, algorithm, protocol, channels);
  }
  return abi::kSuccess;
}

int Destroy(void* context) noexcept {
  Engine::Destroy(static_cast<Engine*>(context));
  return abi::kSuccess;
}

}  // namespace
}  // namespace diapason::plugin

DIAPASON_EXPORT const diapason::plugin::abi::TunerV2 ncclTunerPlugin_v2;
const diapason::plugin::abi::TunerV2 ncclTunerPlugin_v2 = {
    "diapason", diapason::plugin::Init, diapason::plugin::GetCollInfo, diapason::plugin::Destroy};
