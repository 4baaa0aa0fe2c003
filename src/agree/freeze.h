#pragma once

#include <cstdint>
#include <string>

#include "agree/store.h"

namespace diapason::agree {

// Whether a job may try anything, as an operator wants it: cells "control.0", "control.1" and so
// on, each "freeze" or "thaw"; the last one that stands counts. Ranks that lead read it, a tool
// writes it. A job begins thawed.
class FreezeLog {
 public:
  explicit FreezeLog(CellStore* store) : store_(store) {}

  // Reads on from where the last look ended. An error leaves what is known as it is.
  Status Look();
  bool frozen() const { return frozen_; }
  // Makes `frozen` the last word. False: it was already.
  Result<bool> Set(bool frozen);

 private:
  CellStore* const store_;
  uint64_t next_ = 0;
  bool frozen_ = false;
};

}  // namespace diapason::agree
