// Memory allocation of an arena: blocks for regions, and space in them for entries.
#include <algorithm>
#include <cstring>

#include "agree/arena.h"
#include "agree/arena_layout.h"
#include "base/random.h"

namespace diapason::agree {

using arena_layout::ArenaHeader;
using arena_layout::Atomic;
using arena_layout::BlockHeader;
using arena_layout::Control;
using arena_layout::Damaged;
using arena_layout::kFirstBlock;
using arena_layout::kFreeBlock;
using arena_layout::kUsedBlock;

namespace {

constexpr uint64_t kUsedAt = offsetof(ArenaHeader, used);
constexpr uint64_t kFreeAt = offsetof(ArenaHeader, free);
constexpr uint64_t kFreeBlocksAt = offsetof(ArenaHeader, free_blocks);

constexpr uint64_t kLinkBytes = offsetof(BlockHeader, used);  // next and mark

bool AllZero(const char* begin, uint64_t bytes) {
  return bytes == 0 || (*begin == 0 && std::memcmp(begin, begin + 1, bytes - 1) == 0);
}

}  // namespace

uint64_t Arena::Limit() const {
  return std::min(size_, Atomic(memory_, kUsedAt).load(std::memory_order_acquire));
}

uint64_t Arena::BlockMark(uint32_t block, uint64_t state, uint64_t next, uint64_t span) const {
  uint64_t mark = MixBits(nonce_ ^ block);
  mark = MixBits(mark ^ state);
  mark = MixBits(mark ^ next);
  return MixBits(mark ^ span);
}

bool Arena::GoodBlock(uint64_t block, uint64_t span) const {
  const uint64_t limit = Limit();
  return block >= kFirstBlock && (block - kFirstBlock) % kBlock == 0 && block < limit &&
         span >= 1 && span <= (limit - block) / kBlock;
}

// A process that is about to pop a block may read these two words after the block was taken;
// release order, so that it then sees the changed head of the list.
void Arena::SetLink(uint32_t block, uint64_t next, uint64_t mark) {
  Atomic(memory_, block + offsetof(BlockHeader, next)).store(next, std::memory_order_release);
  Atomic(memory_, block + offsetof(BlockHeader, mark)).store(mark, std::memory_order_release);
}

// 0: no block is free.
Result<uint32_t> Arena::PopFree() {
  std::atomic_ref<uint64_t> head = Atomic(memory_, kFreeAt);
  uint64_t word = head.load(std::memory_order_acquire);
  while (true) {
    const auto block = static_cast<uint32_t>(word);
    if (block == 0) return block;
    if (!GoodBlock(block, 1)) {
      if (head.load(std::memory_order_acquire) == word) return Damaged("the list of free blocks");
      word = head.load(std::memory_order_acquire);
      continue;
    }
    const uint64_t next = Atomic(memory_, block + offsetof(BlockHeader, next)).load();
    const uint64_t mark = Atomic(memory_, block + offsetof(BlockHeader, mark)).load();
    const uint64_t now = head.load(std::memory_order_acquire);
    if (now != word) {  // the words read may belong to another process's entry by now
      word = now;
      continue;
    }
    if (mark != BlockMark(block, kFreeBlock, next, 1)) return Damaged("a free block");
    const uint64_t after = ((word >> 32) + 1) << 32 | next;
    if (!head.compare_exchange_weak(word, after, std::memory_order_acq_rel)) continue;
    Atomic(memory_, kFreeBlocksAt).fetch_sub(1, std::memory_order_relaxed);
    SetLink(block, 0, 0);
    return block;
  }
}

// REQUIRES: no process can reach these blocks any more.
void Arena::FreeBlocks(uint32_t block, uint32_t span) {
  for (uint32_t i = 0; i < span; ++i) {
    const uint32_t one = block + i * static_cast<uint32_t>(kBlock);
    SetLink(one, 0, 0);
    std::memset(memory_ + one + kLinkBytes, 0, kBlock - kLinkBytes);
  }
  uint64_t end = block + span * kBlock;
  if (Atomic(memory_, kUsedAt).compare_exchange_strong(end, block, std::memory_order_acq_rel)) {
    return;
  }
  std::atomic_ref<uint64_t> head = Atomic(memory_, kFreeAt);
  for (uint32_t i = 0; i < span; ++i) {
    const uint32_t one = block + i * static_cast<uint32_t>(kBlock);
    uint64_t word = head.load(std::memory_order_acquire);
    uint64_t after = 0;
    do {
      const uint64_t next = static_cast<uint32_t>(word);
      SetLink(one, next, BlockMark(one, kFreeBlock, next, 1));
      after = ((word >> 32) + 1) << 32 | one;
    } while (!head.compare_exchange_weak(word, after, std::memory_order_acq_rel));
    Atomic(memory_, kFreeBlocksAt).fetch_add(1, std::memory_order_relaxed);
  }
}

// Allocates zeroed, consecutive blocks.
Result<uint32_t> Arena::TakeBlocks(uint32_t span) {
  uint32_t block = 0;
  if (span == 1) {
    ASSIGN_OR_RETURN(const uint32_t free, PopFree());
    block = free;
  }
  const uint64_t bytes = span * kBlock;
  if (block == 0) {
    std::atomic_ref<uint64_t> used = Atomic(memory_, kUsedAt);
    uint64_t start = used.load(std::memory_order_acquire);
    do {
      if (start < kFirstBlock || start > size_ || (start - kFirstBlock) % kBlock != 0) {
        return Damaged("how full it is");
      }
      if (bytes > size_ - start) {
        return OutOfRoom(
            Format("the memory in which the ranks agree is full ({} of {} bytes)", start, size_));
      }
    } while (!used.compare_exchange_weak(start, start + bytes, std::memory_order_acq_rel));
    block = static_cast<uint32_t>(start);
  }
  // Free memory is zero: anything else is an entry, which must stay.
  if (!AllZero(memory_ + block, bytes)) return Damaged("free memory is in use");
  return block;
}

// False if the word has changed meanwhile.
bool Arena::LinkBlock(const Link& link, uint32_t block, uint32_t span, uint32_t used) {
  BlockHeader header{};
  header.span = span;
  header.used = used;
  std::memcpy(memory_ + block + kLinkBytes, reinterpret_cast<char*>(&header) + kLinkBytes,
              sizeof(header) - kLinkBytes);
  SetLink(block, link.next, BlockMark(block, kUsedBlock, link.next, span));
  return Swap(link.place, link.before, block);
}

void Arena::LinkLarge(uint32_t control, const Room& room) {
  const auto place = static_cast<uint32_t>(control + offsetof(Control, large));
  while (true) {
    const Result<uint32_t> before = Load(place);
    if (!before.ok()) return;
    if (LinkBlock({place, before.value(), before.value()}, room.block, room.span, kBlock)) return;
  }
}

void Arena::FreeChain(uint32_t block) {
  for (uint64_t steps = size_ / kBlock; block != 0 && steps > 0; --steps) {
    if (!GoodBlock(block, 1)) return;
    BlockHeader header;
    std::memcpy(&header, memory_ + block, sizeof(header));
    if (header.mark != BlockMark(block, kUsedBlock, header.next, header.span) ||
        !GoodBlock(block, header.span)) {
      return;
    }
    FreeBlocks(block, static_cast<uint32_t>(header.span));
    block = static_cast<uint32_t>(header.next);
  }
}

Result<std::optional<Arena::Room>> Arena::TakeIn(uint32_t block, uint32_t bytes) {
  if (!GoodBlock(block, 1)) return Damaged("a block out of bounds");
  std::atomic_ref<uint64_t> used = Atomic(memory_, block + offsetof(BlockHeader, used));
  uint64_t start = used.load(std::memory_order_acquire);
  do {
    if (start < sizeof(BlockHeader) || start > kBlock || start % 8 != 0) {
      return Damaged("how full a block is");
    }
    if (bytes > kBlock - start) return std::optional<Room>();
  } while (!used.compare_exchange_weak(start, start + bytes, std::memory_order_acq_rel));
  Room room;
  room.block = block;
  room.offset = block + static_cast<uint32_t>(start);
  room.bytes = bytes;
  if (!AllZero(memory_ + room.offset, bytes)) return Damaged("free memory is in use");
  return std::optional<Room>(room);
}

Result<Arena::Room> Arena::Take(const Table& table, uint64_t bytes) {
  const auto place = static_cast<uint32_t>(table.control + offsetof(Control, newest));
  while (true) {
    ASSIGN_OR_RETURN(const uint32_t newest, Load(place));
    const uint32_t block = newest != 0 ? newest : table.first_block;
    if (block != 0 && bytes <= kBlock) {
      ASSIGN_OR_RETURN(const std::optional<Room> room, TakeIn(block, static_cast<uint32_t>(bytes)));
      if (room) return *room;
    }
    Room alone;
    // An entry that would waste much of a block gets blocks of its own, and the current block stays
    // in use.
    alone.span = static_cast<uint32_t>((bytes + sizeof(BlockHeader) + kBlock - 1) / kBlock);
    ASSIGN_OR_RETURN(const uint32_t fresh, TakeBlocks(alone.span));
    if (bytes > kBlock / 2) {
      alone.block = fresh;
      alone.offset = alone.block + static_cast<uint32_t>(sizeof(BlockHeader));
      alone.bytes = static_cast<uint32_t>(bytes);
      return alone;
    }
    if (!LinkBlock({place, newest, block}, fresh, 1, sizeof(BlockHeader))) {
      FreeBlocks(fresh, 1);
    }
  }
}

// REQUIRES: nothing points to it.
void Arena::GiveBack(const Room& room) {
  if (room.span != 0) return FreeBlocks(room.block, room.span);
  std::memset(memory_ + room.offset, 0, room.bytes);
  uint64_t end = room.offset - room.block + room.bytes;
  Atomic(memory_, room.block + offsetof(BlockHeader, used))
      .compare_exchange_strong(end, room.offset - room.block, std::memory_order_acq_rel);
}

double Arena::Fullness() const {
  const uint64_t all = size_ - (size_ - kFirstBlock) % kBlock;
  const uint64_t used = std::clamp<uint64_t>(Limit(), kFirstBlock, all);
  const uint64_t free = Atomic(memory_, kFreeBlocksAt).load(std::memory_order_relaxed);
  const uint64_t free_bytes = std::min(free, (used - kFirstBlock) / kBlock) * kBlock;
  return static_cast<double>(used - free_bytes) / static_cast<double>(all);
}

}  // namespace diapason::agree
