#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "agree/store.h"

namespace diapason::agree {

// How the ranks of a new communicator find each other. Each registers; one that sees all of them,
// and all alike, proposes to go ahead with what it carries; one that has waited its limit, or sees
// a rank that differs, proposes to stay off. The first proposal stands for all.
struct JoinRequest {
  uint64_t comm_id = 0;
  int rank = 0;
  int ranks = 0;
  // What must be the same on every rank: the plugin's build, the library, the settings that decide.
  // "key=value" words separated by blanks, so that a difference can be named.
  std::string alike;
  // What stands for all if this rank is the first to see everybody.
  std::string offer;
  std::chrono::milliseconds limit{10000};
};

struct JoinOutcome {
  bool together = false;
  std::string offer;    // the one that stands; empty unless together
  std::string why_not;  // for people; empty if together
  // Before every cell of this communicator: the id and a generation, because an id can come again
  // (NCCL_COMM_ID, a restarted job).
  std::string prefix;
};

// An error: this rank cannot know what the others have agreed (see Store).
Result<JoinOutcome> Join(Store* store, const JoinRequest& request);

}  // namespace diapason::agree
