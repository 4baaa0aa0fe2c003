#pragma once

// The memory layout of an arena: for arena.cc and arena_blocks.cc only.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "base/text.h"

namespace diapason::agree::arena_layout {

constexpr char kMagic[8] = {'d', 'i', 'a', 'p', 'a', 'r', 'e', '2'};
constexpr uint32_t kBuckets = 8192;
constexpr uint32_t kRegionBuckets = 256;

// Each word has a checksum: see SealedWith in arena.cc.
struct Control {
  uint64_t table;   // the region's first block, with the heads of its chains; or kEnded
  uint64_t newest;  // its other blocks, newest first; each points to the one before
  uint64_t large;   // the same for blocks that hold one entry each
  uint64_t done;    // how many members are
};
constexpr uint32_t kEnded = 1;

struct ArenaHeader {
  char magic[8];
  uint64_t buckets;
  uint64_t size;
  uint64_t nonce;
  uint64_t check;
  char apart[24];  // keeps constant and changing members on different cache lines
  uint64_t used;   // blocks from here on were never allocated
  uint64_t free;   // the first free block, with a change count in the upper bits, against ABA
  uint64_t free_blocks;
  char apart_too[40];
  Control common;
  char apart_again[32];
};
constexpr uint32_t kHeadsAt = sizeof(ArenaHeader);
constexpr uint32_t kFirstBlock = kHeadsAt + kBuckets * sizeof(uint64_t);
static_assert(kFirstBlock % 64 == 0);

// At the beginning of every block.
struct BlockHeader {
  uint64_t next;  // in the free list, or the previous one in its region
  uint64_t mark;  // checksum of state, next, span and place
  uint64_t used;  // bytes allocated in it, including this header
  uint64_t span;  // number of consecutive blocks in this one
};
enum BlockState : uint64_t { kFreeBlock = 1, kUsedBlock = 2 };

inline std::atomic_ref<uint64_t> Atomic(char* memory, uint64_t offset) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory + offset));
}

inline Status Damaged(const char* what) {
  return Unavailable(Format("the memory in which the ranks agree is damaged ({})", what));
}

}  // namespace diapason::agree::arena_layout
