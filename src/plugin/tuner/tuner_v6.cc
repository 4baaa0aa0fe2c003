// Tuner API v6: NCCL and RCCL 2.30 and later. Adds the chunk size, which stays the library's.
#include "plugin/tuner/tuner_callbacks.h"

namespace diapason::plugin {
namespace {

int GetChunkSize(void* context, int collective, size_t bytes, int algorithm, int protocol,
                 int channels, size_t* chunk_size) noexcept {
  auto* engine = static_cast<Engine*>(context);
  if (engine == nullptr) return abi::kSuccess;
  return engine->ChunkSize(collective, bytes, algorithm, protocol, channels, chunk_size);
}

}  // namespace

DIAPASON_EXPORT const abi::TunerV6 ncclTunerPlugin_v6;
const abi::TunerV6 ncclTunerPlugin_v6 = {"diapason", InitWithId<6>, AskByTable, End, GetChunkSize};

}  // namespace diapason::plugin
