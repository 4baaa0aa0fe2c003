#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace diapason::agree {

// Cells of a context's next epochs that the learning thread has read ahead, for the thread that
// enters them. A written cell is final, so a known value stays valid whatever happens to the store.
// An empty cell is never remembered, because it may be written by now.
//
// Thread-safe. The lock is held for a map lookup, never during store access.
class KnownCells {
 public:
  void Put(uint32_t epoch, std::string text);
  bool Has(uint32_t epoch) const;
  // The value of this epoch's cell, if known; drops it and all earlier ones.
  std::optional<std::string> Take(uint32_t epoch);

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, std::string> cells_;  // guarded by mutex_
};

}  // namespace diapason::agree
