#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "agree/store.h"

namespace diapason::agree {

// How the ranks of a new communicator agree at init. Every rank registers. Only rank 0 proposes to
// go ahead with its own offer, after it has seen all registrations and found them alike; if two
// differ, it proposes to stay off. A rank whose wait reaches its limit proposes `missing` (to stay
// off, or to go alone). The store keeps the first proposal, and every rank follows it.
//
// A rank that does not know its number takes the first free slot; then all ranks of the
// communicator must do so.
inline constexpr int kUnknownRank = -1;
struct JoinRequest {
  uint64_t comm_id = 0;
  int rank = 0;  // or kUnknownRank
  int ranks = 0;
  // What must be the same on every rank: the plugin's build, the library, the settings that affect
  // decisions. "key=value" words separated by blanks, so that a message can name the difference.
  std::string alike;
  // The policy that all ranks use if all join: only rank 0's counts. Stored once, however many
  // communicators share it.
  std::string offer;
  std::chrono::milliseconds limit{10000};
  // What this rank proposes if ranks are missing: that all stay off, or that each rank that has
  // joined uses its own settings.
  enum class Missing { kStayOff, kGoAlone } missing = Missing::kStayOff;
  // How long each call waits for a store that does not answer.
  std::chrono::milliseconds patience{0};
  // Called with a message for each such wait; may be empty.
  std::function<void(const std::string& text)> say;
};

// What the caller must know if its own code fails before or after Join returns.
struct JoinProgress {
  // This rank's registration may stand, and no decision to stay off is known: the others may have
  // gone ahead, so this rank must not step aside on its own.
  bool committed = false;
};

struct JoinOutcome {
  bool together = false;
  bool alone = false;   // ranks are missing, and each rank uses its own settings
  std::string offer;    // the agreed offer; empty unless together
  std::string why_not;  // for the user; empty if together
  // Prefix of every cell of this communicator: the id and a generation, because an id can recur
  // (NCCL_COMM_ID, a restarted job).
  std::string prefix;
};

// An error: this rank has registered, and cannot know what the others have agreed on (see
// CellStore). Before registration, a store that fails or is full only means that this rank does not
// join: the others cannot go ahead without it, and it stays off.
Result<JoinOutcome> Join(CellStore* store, const JoinRequest& request,
                         JoinProgress* progress = nullptr);

}  // namespace diapason::agree
