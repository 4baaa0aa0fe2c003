#pragma once

#include <cstdint>
#include <string>

#include "agree/store.h"

namespace diapason::agree {

// The job's single permission to explore while whole iterations are the reward: the effects of two
// contexts that explore in the same iteration could not be separated. Passed on through write-once
// cells: turn n belongs to the first proposer, until the end of the turn is written.
class Token {
 public:
  // `me` must be unique per possible holder: communicator, context, process of the rank.
  Token(CellStore* store, std::string me);

  // Whether this holder has the token now. Never waits. Walks a bounded number of turns per call.
  Result<bool> TryTake();
  // Ends this holder's turn; OK if it does not have the token.
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
