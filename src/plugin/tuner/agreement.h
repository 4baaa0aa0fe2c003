#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "agree/join.h"
#include "agree/store.h"
#include "base/settings.h"
#include "plugin/abi/host.h"
#include "plugin/tuner/chain.h"
#include "plugin/tuner/decision_inputs.h"
#include "policy/policy.h"

namespace diapason::plugin {

class CommState;

// The stores of the process; they live until it ends. With a server, calls have a connection of
// their own, so that they never wait for a request of the learning thread.
struct ProcessStores {
  agree::CellStore* calls = nullptr;
  agree::CellStore* background = nullptr;  // the same object, unless it is a connection to a server
};

// What the ranks of a new communicator have agreed on.
struct Agreement {
  enum class Kind {
    kAlone,     // no agreement was sought: each rank uses its own settings
    kTogether,  // all ranks do the same
    kOff,       // the ranks did not agree: the library decides, on all of them
    kLost,      // this rank cannot know what the others do
  };
  Kind kind = Kind::kAlone;
  bool learn = false;
  std::string why;           // for the user, if the ranks did not agree
  std::string why_no_learn;  // likewise, if they agreed and cannot learn, although they should
  ProcessStores stores;
  std::string prefix;  // prefix of all cells of the communicator
  std::string job;
  std::optional<policy::Policy> policy;  // the policy of all ranks; nullopt: none
};

// This rank's own policy.
struct OwnPolicy {
  bool named = false;                    // the settings name one
  std::optional<policy::Policy> policy;  // nullopt: none is configured, or it was rejected
};

// Waits, with a limit, for the other ranks of a communicator at init:
//   - If ranks learn or a store is set, all ranks use rank 0's policy.
//   - Otherwise, if there is a policy or a chained tuner to apply, the ranks of one host verify in
//     shared memory that all have the same policy and the same inputs; if not, all stay off. Where
//     they cannot (several hosts, tuner API v4 and earlier), each rank uses its own settings.
//
// `communicator` is nullptr if the profiler half is not loaded: verifying does not need it.
// `progress` says whether this rank may still step aside if it fails.
Agreement Agree(const Settings& settings, const CommInit& init, const Host& host,
                const CommState* communicator, DecisionInputs inputs, const OwnPolicy& own,
                agree::JoinProgress* progress);

// This process runs no collectives: its communicators have no other ranks to verify a policy with.
void SetRehearsal(bool on) noexcept;

// How long a call waits for a store that does not answer.
std::chrono::milliseconds StorePatience(const Settings& settings);

}  // namespace diapason::plugin
