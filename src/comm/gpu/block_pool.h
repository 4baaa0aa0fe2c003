#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/gpu/runtime.h"

namespace diapason::comm::gpu {

// Memory blocks that calls borrow and return. Nothing is freed before the end: freeing waits for
// all GPU work, which may include an operation that never ends. Not thread-safe.
class BlockPool {
 public:
  enum class Kind { kDevice, kPinned };
  struct Block {
    void* memory = nullptr;
    size_t bytes = 0;
    bool lent = false;
  };

  BlockPool(Runtime* runtime, Kind kind) : runtime_(runtime), kind_(kind) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // At least `bytes` bytes, aligned for any type.
  Result<Block*> Borrow(size_t bytes);
  static void Return(Block* block) { block->lent = false; }

  // Frees all blocks, borrowed or not. Without this call they stay allocated until the process
  // ends, which is needed if the GPU may still write to them.
  void FreeAll();

 private:
  Runtime* runtime_;
  Kind kind_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace diapason::comm::gpu
