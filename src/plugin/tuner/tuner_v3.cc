// Tuner API v3: NCCL 2.22 and 2.23. The first with a cost table; does not report regBuff.
#include "plugin/tuner/tuner_callbacks.h"

namespace diapason::plugin {
namespace {

int GetCollInfo(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                int algorithms, int protocols, int* channels) noexcept {
  return AskByTable(context, collective, bytes, pipe_ops, table, algorithms, protocols,
                    policy::kAny, channels);
}

}  // namespace

DIAPASON_EXPORT const abi::TunerV3 ncclTunerPlugin_v3;
const abi::TunerV3 ncclTunerPlugin_v3 = {"diapason", InitWithoutId<3>, GetCollInfo, End};

}  // namespace diapason::plugin
