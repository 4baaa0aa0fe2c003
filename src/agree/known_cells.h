#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace diapason::agree {

// Cells of a context's coming epochs that a background thread has read ahead, for the thread that
// enters them. A cell that stands is final, so what is known here stays true whatever becomes of
// the store. That a cell was empty is never kept: it may stand by now.
//
// Any thread may call. The lock is held for a look into a map, never during store traffic.
class KnownCells {
 public:
  void Put(uint32_t epoch, std::string text);
  bool Has(uint32_t epoch) const;
  // What stands for this epoch, if it is known; it and all before it are dropped here.
  std::optional<std::string> Take(uint32_t epoch);

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, std::string> cells_;  // guarded by mutex_
};

}  // namespace diapason::agree
