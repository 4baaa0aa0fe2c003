#pragma once

#include <cstdint>
#include <string>

#include "agree/store.h"

namespace diapason::agree {

// The job's one permission to explore while whole iterations are the reward: two contexts that try
// something in the same iteration could not be told apart. Passed on through write-once cells:
// turn n belongs to whoever wrote it first, until its end is written.
class Token {
 public:
  // `me` is different for everybody who may hold it: communicator, context, rank's process.
  Token(CellStore* store, std::string me);

  // Whether the token is ours now. Never waits. Walks a bounded number of turns per call.
  Result<bool> TryTake();
  // Ends our turn; fine when it is not ours.
  Status Release() { return Release(std::chrono::steady_clock::now() + kUsualLimit); }
  Status Release(Deadline deadline);
  bool held() const { return held_; }

 private:
  CellStore* store_;
  std::string me_;
  uint64_t turn_ = 0;
  bool held_ = false;
};

}  // namespace diapason::agree
