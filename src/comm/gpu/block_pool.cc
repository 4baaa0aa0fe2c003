#include "comm/gpu/block_pool.h"

#include <algorithm>
#include <bit>

namespace diapason::comm::gpu {
namespace {

constexpr size_t kSmallest = size_t{64} << 10;

}  // namespace

Result<BlockPool::Block*> BlockPool::Borrow(size_t bytes) {
  Block* best = nullptr;
  for (const auto& block : blocks_) {
    if (block->lent || block->bytes < bytes) continue;
    if (best == nullptr || block->bytes < best->bytes) best = block.get();
  }
  if (best == nullptr) {
    // Powers of two, so that a program with growing calls does not leave a block for each size.
    const size_t size = std::bit_ceil(std::max(bytes, kSmallest));
    ASSIGN_OR_RETURN(void* const memory, kind_ == Kind::kDevice ? runtime_->Allocate(size)
                                                                : runtime_->AllocatePinned(size));
    blocks_.push_back(std::make_unique<Block>(Block{memory, size}));
    best = blocks_.back().get();
  }
  best->lent = true;
  return best;
}

void BlockPool::FreeAll() {
  for (const auto& block : blocks_) {
    if (kind_ == Kind::kDevice) {
      runtime_->Free(block->memory);
    } else {
      runtime_->FreePinned(block->memory);
    }
  }
  blocks_.clear();
}

}  // namespace diapason::comm::gpu
