#pragma once

#include "plugin/tuner/engine.h"

// The callbacks shared by several API versions. The context is the engine; nullptr means that the
// plugin has stepped aside.
namespace diapason::plugin {

// v2 to v4: the context comes last, and the communicator has no id.
template <int kApi>
int InitWithoutId(size_t ranks, size_t nodes, abi::Logger logger, void** context) noexcept {
  if (context == nullptr) return abi::kSuccess;
  CommInit init;
  init.api = kApi;
  init.shape = {static_cast<int64_t>(nodes), static_cast<int64_t>(ranks)};
  init.logger = logger;
  int status = abi::kSuccess;
  *context = Engine::Create(init, &status);
  return status;
}

// v5 and later.
template <int kApi>
int InitWithId(void** context, uint64_t comm_id, size_t ranks, size_t nodes, abi::Logger logger,
               abi::NvlDomainInfo* domain, abi::Constants* constants) noexcept {
  if (context == nullptr) return abi::kSuccess;
  CommInit init;
  init.api = kApi;
  init.comm_id = comm_id;
  init.shape = {static_cast<int64_t>(nodes), static_cast<int64_t>(ranks)};
  init.logger = logger;
  init.domain = domain;
  init.constants = constants;
  int status = abi::kSuccess;
  *context = Engine::Create(init, &status);
  return status;
}

// v4 and later.
inline int AskByTable(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                      int algorithms, int protocols, int reg_buff, int* channels) noexcept {
  auto* engine = static_cast<Engine*>(context);
  if (engine == nullptr) return abi::kSuccess;
  return engine->DecideByTable(collective, bytes, pipe_ops, reg_buff,
                               {reinterpret_cast<float*>(table), algorithms, protocols}, channels);
}

// v2 and later: destroy, or finalize.
inline int End(void* context) noexcept {
  Engine::Destroy(static_cast<Engine*>(context));
  return abi::kSuccess;
}

}  // namespace diapason::plugin
