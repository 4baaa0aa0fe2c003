#pragma once

#include <cstdint>
#include <string>

#include "agree/store.h"

namespace diapason::agree {

// Whether the job may explore, as the operator wants it: cells "control.0", "control.1" and so on,
// each "freeze" or "thaw"; the last one that stands counts. Rank 0 of each communicator reads it,
// `diapason freeze` writes it. A job begins thawed.
class FreezeLog {
 public:
  explicit FreezeLog(CellStore* store) : store_(store) {}

  // Reads on from where the last call ended. An error leaves the known state unchanged.
  Status Look();
  bool frozen() const { return frozen_; }
  // Appends the wanted state. False: it was already the current one.
  Result<bool> Set(bool frozen);

 private:
  CellStore* const store_;
  uint64_t next_ = 0;
  bool frozen_ = false;
};

}  // namespace diapason::agree
