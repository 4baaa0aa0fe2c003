#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason::agree {

// Write-once cells in memory that several processes have mapped. There are no locks: a process
// writes an entry where no other process looks, and one compare-and-swap links it into its chain. A
// process killed half-way leaks some bytes or blocks.
//
// The memory is allocated in blocks. Cells of one communicator, whose keys share the prefix
// "c<id>.<generation>.", have blocks of their own, a region; once all its members are done, the
// blocks are zeroed and reused. All other cells stay for ever. The name of a region stays too, so
// that a later read of its cells is an error, and not an empty cell.
//
// Everything read is validated first: offsets and lengths against the memory; heads of chains,
// entries, values, regions and blocks against a checksum. Damaged memory gives errors, and never a
// cell that wrongly seems empty.
class Arena {
 public:
  static constexpr uint64_t kBlock = uint64_t{16} << 10;

  // Bytes in use in a new arena.
  static uint64_t FirstBytes();
  // Initialises zeroed memory as an arena. REQUIRES: size is at least FirstBytes() + kBlock and
  // less than 4 GiB; memory is aligned to 64 bytes.
  static void Prepare(void* memory, uint64_t size, uint64_t nonce);
  // OK if this memory is an arena of this size; otherwise the error says why not.
  static Status Check(const void* memory, uint64_t size);

  // REQUIRES: Check() returned OK. `between` is for tests: called after a proposer has found the
  // cell empty and before it publishes.
  Arena(void* memory, uint64_t size, std::function<void()> between = nullptr);

  // Key and value must be within the limits of store.h. kNoRoom: the arena is full.
  Result<std::string> Propose(std::string_view key, std::string_view value);
  Result<std::optional<std::string>> Read(std::string_view key) const;
  // One of `members` ranks is done with the region of this prefix; see CellStore::Done. Prefixes
  // without a region are ignored.
  Status Done(std::string_view prefix, uint32_t members);
  // The fraction of blocks in use.
  double Fullness() const;

 private:
  struct Entry;
  // The chains and the words that name their blocks: the common ones, or a region's.
  struct Table {
    uint32_t heads = 0;
    uint32_t buckets = 0;
    uint32_t control = 0;
    uint32_t first_block = 0;  // 0: the common one
    uint32_t HeadOf(std::string_view key) const;
  };
  // Space for one entry: part of a shared block, or `span` blocks of its own.
  struct Room {
    uint32_t offset = 0;
    uint32_t block = 0;
    uint32_t bytes = 0;
    uint32_t span = 0;
  };
  // Where a block is inserted: the word that will point to it, the current value of that word, and
  // the next block.
  struct Link {
    uint32_t place = 0;
    uint32_t before = 0;
    uint32_t next = 0;
  };

  // Words that point to something hold an offset (or a number) and a checksum of it and of the
  // word's own place.
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
