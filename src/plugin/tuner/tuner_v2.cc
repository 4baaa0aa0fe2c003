// Tuner API v2: NCCL 2.21, RCCL 2.21. No table: the library takes the answered pair as it is.
#include "plugin/tuner/tuner_callbacks.h"

namespace diapason::plugin {
namespace {

int GetCollInfo(void* context, int collective, size_t bytes, int collnet, int nvls, int pipe_ops,
                int* algorithm, int* protocol, int* channels) noexcept {
  auto* engine = static_cast<Engine*>(context);
  if (engine != nullptr) {
    engine->DecideByPair(collective, bytes, collnet, nvls, pipe_ops, algorithm, protocol, channels);
  }
  return abi::kSuccess;
}

}  // namespace

DIAPASON_EXPORT const abi::TunerV2 ncclTunerPlugin_v2;
const abi::TunerV2 ncclTunerPlugin_v2 = {"diapason", InitWithoutId<2>, GetCollInfo, End};

}  // namespace diapason::plugin
