#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason::agree {

// Write-once cells in a block of memory that several processes have mapped. No locks: an entry is
// written where nobody looks, and one compare-and-swap puts it into its chain. A process killed
// half-way leaves some bytes that nobody can reach. Nothing is ever changed or removed.
//
// Whatever is read is checked before it is believed: every offset and length against the block,
// every chain's head, entry and value against a checksum. A damaged block gives errors, and never a
// cell that seems empty but is not.
class Arena {
 public:
  // Called before the bytes up to `end` are touched for the first time by this process.
  using Commit = std::function<Status(uint64_t end)>;

  // How much of the block is in use from the beginning.
  static uint64_t FirstBytes();
  // Makes an arena of zeroed memory.
  // REQUIRES: size is more than FirstBytes() and at most 4 GiB - 8; memory is page-aligned.
  static void Prepare(void* memory, uint64_t size, uint64_t nonce);
  // Why this memory is no arena of this size; fine if it is.
  static Status Check(const void* memory, uint64_t size);

  // REQUIRES: Check() was fine.
  Arena(void* memory, uint64_t size, Commit commit);

  // Key and value are within the limits of store.h.
  Result<std::string> Propose(std::string_view key, std::string_view value);
  Result<std::optional<std::string>> Read(std::string_view key) const;
  double Fullness() const;

 private:
  struct Entry;

  uint64_t* Head(uint64_t bucket) const;
  uint64_t HeadWord(uint64_t bucket, uint32_t offset) const;
  Result<uint32_t> LoadHead(uint64_t bucket) const;
  uint64_t EntryCheck(uint32_t offset, const Entry& entry, std::string_view key) const;
  // Searches a chain from `first` until before `last` (0: to its end).
  Result<std::optional<std::string>> Find(uint32_t first, uint32_t last,
                                          std::string_view key) const;
  Result<uint32_t> Take(uint64_t bytes);
  void GiveBack(uint32_t offset, uint64_t bytes);

  char* memory_;
  uint64_t size_;
  uint64_t nonce_;
  Commit commit_;
};

}  // namespace diapason::agree
