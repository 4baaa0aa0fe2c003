#pragma once

#include "plugin/tuner/engine.h"

// The callbacks shared by several API versions. The context is the engine; nullptr means that the
// plugin has stepped aside.
namespace diapason::plugin {

// v5 and later.
template <int kApi>
int InitWithId(void** context, uint64_t comm_id, size_t ranks, size_t nodes, abi::Logger logger,
               abi::NvlDomainInfo* domain, abi::Constants* constants) noexcept {
  if (context == nullptr) return abi::kSuccess;
  const Shape shape{static_cast<int64_t>(nodes), static_cast<int64_t>(ranks)};
  int status = abi::kSuccess;
  *context = Engine::Create({kApi, comm_id, shape, logger, domain, constants}, &status);
  return status;
}

// v2 to v4: the context comes last, and the communicator has no id.
template <int kApi>
int InitWithoutId(size_t ranks, size_t nodes, abi::Logger logger, void** context) noexcept {
  return InitWithId<kApi>(context, 0, ranks, nodes, logger, nullptr, nullptr);
}

// v4 and later.
inline int AskByTable(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                      int algorithms, int protocols, int reg_buff, int* channels) noexcept {
  auto* engine = static_cast<Engine*>(context);
  if (engine == nullptr) return abi::kSuccess;
  return engine->DecideByTable(collective, bytes, pipe_ops, reg_buff,
                               {reinterpret_cast<float*>(table), algorithms, protocols}, channels);
}

// v6 and later.
inline int AskChunkSize(void* context, int collective, size_t bytes, int algorithm, int protocol,
                        int channels, size_t* chunk_size) noexcept {
  auto* engine = static_cast<Engine*>(context);
  if (engine == nullptr) return abi::kSuccess;
  return engine->ChunkSize(collective, bytes, algorithm, protocol, channels, chunk_size);
}

// v2 and later: destroy, or finalize.
inline int End(void* context) noexcept {
  Engine::Destroy(static_cast<Engine*>(context));
  return abi::kSuccess;
}

}  // namespace diapason::plugin
