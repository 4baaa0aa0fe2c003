// Tuner API v5: NCCL 2.28 and 2.29, RCCL 2.28. Tells the communicator's id.
#include "plugin/engine.h"

namespace diapason::plugin {
namespace {

int Init(void** context, uint64_t comm_id, size_t ranks, size_t nodes, abi::Logger logger,
         abi::NvlDomainInfo* domain, abi::Constants* constants) noexcept {
  if (context == nullptr) return abi::kSuccess;
  Birth birth;
  birth.api = 5;
  birth.comm_id = comm_id;
  birth.shape = {static_cast<int64_t>(nodes), static_cast<int64_t>(ranks)};
  birth.logger = logger;
  birth.domain = domain;
  birth.constants = constants;
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

int Finalize(void* context) noexcept {
  Engine::Destroy(static_cast<Engine*>(context));
  return abi::kSuccess;
}

}  // namespace
}  // namespace diapason::plugin

DIAPASON_EXPORT const diapason::plugin::abi::TunerV5 ncclTunerPlugin_v5;
const diapason::plugin::abi::TunerV5 ncclTunerPlugin_v5 = {
    "diapason", diapason::plugin::Init, diapason::plugin::GetCollInfo, diapason::plugin::Finalize};
