#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "agree/store.h"

namespace diapason::agree {

// How the ranks of a new communicator find each other. Each registers. Rank 0, when it sees all of
// them, and all alike, proposes to go ahead with what it carries, and to stay off where two differ;
// a rank that has waited its limit proposes to stay off. The first proposal stands for all.
//
// A rank that does not know its number takes the first slot that is free; then all ranks of the
// communicator must do so.
inline constexpr int kUnknownRank = -1;
struct JoinRequest {
  uint64_t comm_id = 0;
  int rank = 0;  // or kUnknownRank
  int ranks = 0;
  // What must be the same on every rank: the plugin's build, the library, the settings that decide.
  // "key=value" words separated by blanks, so that a difference can be named.
  std::string alike;
  // What stands for all if all come: rank 0's. Kept once in the store, however many communicators
  // carry it.
  std::string offer;
  std::chrono::milliseconds limit{10000};
  // What this rank proposes when not all have come: that all stay off, or that each that has come
  // does what it would do without the others.
  enum class Missing { kStayOff, kGoAlone } missing = Missing::kStayOff;
  // How long each call waits for a store that does not answer.
  std::chrono::milliseconds patience{0};
  std::function<void(const std::string& text)> say;  // told of such waits; may be empty
};

// What a caller must know whose own code fails before Join returns, or after.
struct JoinProgress {
  // This rank's registration may stand, and it was not told to stay off: the others may have gone
  // ahead, so it must not step aside on its own.
  bool committed = false;
};

struct JoinOutcome {
  bool together = false;
  bool alone = false;   // not all have come, and each goes by its own
  std::string offer;    // the one that stands; empty unless together
  std::string why_not;  // for people; empty if together
  // Before every cell of this communicator: the id and a generation, because an id can come again
  // (NCCL_COMM_ID, a restarted job).
  std::string prefix;
};

// An error: this rank has registered, and cannot know what the others have agreed (see Store).
// Before that, a store that fails or has no room only means that this rank does not come: the
// others cannot go ahead without it, and it stays off.
Result<JoinOutcome> Join(CellStore* store, const JoinRequest& request,
                         JoinProgress* progress = nullptr);

}  // namespace diapason::agree
