#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason::agree {

// Write-once cells in a stretch of memory that several processes have mapped. No locks: an entry is
// written where no other process looks, and one compare-and-swap puts it into its chain. A process
// killed half-way leaves some bytes, or blocks, that cannot be reached and are lost.
//
// The memory is handed out in blocks. Cells of one communicator, whose keys begin with the same
// "c<id>.<generation>.", are in blocks of their own, a region; once all its members are done, its
// blocks are zeroed and used again. All other cells stay for ever. What stays of a region is its
// name, so that asking for its cells later is an error, and not an empty cell.
//
// What is read is checked before it is believed: offsets and lengths against the memory, the heads
// of chains, entries, values, regions and blocks against a checksum. Damaged memory gives errors,
// and never a cell that seems empty but is not.
class Arena {
 public:
  static constexpr uint64_t kBlock = uint64_t{16} << 10;

  // How much of the memory is in use from the beginning.
  static uint64_t FirstBytes();
  // Makes an arena of zeroed memory.
  // REQUIRES: size is at least FirstBytes() + kBlock and less than 4 GiB; memory is aligned to 64.
  static void Prepare(void* memory, uint64_t size, uint64_t nonce);
  // Why this memory is no arena of this size; fine if it is.
  static Status Check(const void* memory, uint64_t size);

  // REQUIRES: Check() was fine. Tests have `between` called after a proposer has found nothing and
  // before it publishes.
  Arena(void* memory, uint64_t size, std::function<void()> between = nullptr);

  // Key and value are within the limits of store.h. kNoRoom: there is no room for it.
  Result<std::string> Propose(std::string_view key, std::string_view value);
  Result<std::optional<std::string>> Read(std::string_view key) const;
  // One of `members` is done with the region of this prefix; see Store::Done. Other prefixes have
  // no region, and are ignored.
  Status Done(std::string_view prefix, uint32_t members);
  // Blocks in use, of all.
  double Fullness() const;

 private:
  struct Entry;
  // Chains, and the words that say which blocks are theirs: the common ones, or a region's.
  struct Table {
    uint32_t heads = 0;
    uint32_t buckets = 0;
    uint32_t control = 0;
    uint32_t first_block = 0;  // 0: the common one
    uint32_t HeadOf(std::string_view key) const;
  };
  // Room for one entry: in a block among others, or in `span` blocks of its own.
  struct Room {
    uint32_t offset = 0;
    uint32_t block = 0;
    uint32_t bytes = 0;
    uint32_t span = 0;
  };
  // Where a block is put in: the word that will lead to it, what that word is now, and the block
  // after it.
  struct Link {
    uint32_t place = 0;
    uint32_t before = 0;
    uint32_t next = 0;
  };

  // Words that lead to something hold an offset (or a number), and a seal of it and their place.
  Result<uint32_t> Load(uint32_t place) const;
  bool Swap(uint32_t place, uint32_t before, uint32_t after);
  void Clear(uint32_t place, uint32_t words);

  static Table Common();
  Result<uint32_t> CheckedControl(const std::string& value) const;
  Result<std::optional<uint32_t>> FindControl(std::string_view region) const;
  Result<uint32_t> MakeControl(std::string_view region);
  Result<std::optional<Table>> TableOf(uint32_t control) const;
  Result<std::optional<Table>> FindTable(std::string_view key) const;
  Result<Table> MakeTable(std::string_view key);
  Status End(uint32_t control);

  uint64_t EntryCheck(uint32_t offset, const Entry& entry, std::string_view key) const;
  // Searches a chain from `first` until before `last` (0: to its end).
  Result<std::optional<std::string>> Find(uint32_t first, uint32_t last,
                                          std::string_view key) const;
  Result<std::optional<std::string>> ReadIn(const Table& table, std::string_view key) const;
  Result<std::string> ProposeIn(const Table& table, std::string_view key, std::string_view value);
  Result<std::string> Publish(const Table& table, std::string_view key, std::string_view value,
                              const Room& room, uint32_t head);

  // In arena_blocks.cc.
  uint64_t Limit() const;
  uint64_t BlockMark(uint32_t block, uint64_t state, uint64_t next, uint64_t span) const;
  bool GoodBlock(uint64_t block, uint64_t span) const;
  Result<uint32_t> TakeBlocks(uint32_t span);
  Result<uint32_t> PopFree();
  void SetLink(uint32_t block, uint64_t next, uint64_t mark);
  void FreeBlocks(uint32_t block, uint32_t span);
  void FreeChain(uint32_t block);
  bool LinkBlock(const Link& link, uint32_t block, uint32_t span, uint32_t used);
  void LinkLarge(uint32_t control, const Room& room);
  Result<Room> Take(const Table& table, uint64_t bytes);
  Result<std::optional<Room>> TakeIn(uint32_t block, uint32_t bytes);
  void GiveBack(const Room& room);

  char* memory_;
  uint64_t size_;
  uint64_t nonce_;
  std::function<void()> between_;
};

}  // namespace diapason::agree
