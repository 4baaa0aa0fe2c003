#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/gpu/runtime.h"

namespace diapason::comm::gpu {

// Memory that calls borrow and give back. Nothing is freed before the end: freeing waits for
// everything the GPU is doing, and that may be an operation that never ends. One thread at a time.
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

  // At least so many bytes, aligned for any type.
  Result<Block*> Borrow(size_t bytes);
  static void Return(Block* block) { block->lent = false; }

  // Frees all blocks, lent or not. Without it they stay for the life of the process: right where
  // the GPU may still write to them.
  void FreeAll();

 private:
  Runtime* runtime_;
  Kind kind_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace diapason::comm::gpu
