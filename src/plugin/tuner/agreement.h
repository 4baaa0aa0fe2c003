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

// The store of the process, which lives as long as it. Calls have a connection of their own where
// there is one to a server: what the background thread asks for must not keep them waiting.
struct ProcessStores {
  agree::CellStore* calls = nullptr;
  agree::CellStore* background = nullptr;  // the same object, unless it is a connection
};

// What the ranks of a new communicator have agreed on.
struct Agreement {
  enum class Kind {
    kAlone,     // the ranks were not asked: each goes by its own settings
    kTogether,  // all ranks do the same
    kOff,       // they could not come together: the library decides, on all of them
    kLost,      // this rank cannot know what the others do
  };
  Kind kind = Kind::kAlone;
  bool learn = false;
  std::string why;  // for people, where they are not together
  ProcessStores stores;
  std::string prefix;  // before all cells of the communicator
  std::string job;
  std::optional<policy::Policy> policy;  // that of all ranks; nullopt: none
};

// This rank's own policy.
struct OwnPolicy {
  bool named = false;                    // the settings name one
  std::optional<policy::Policy> policy;  // nullopt: none is named, or it was refused
};

// Waits, bounded, for the other ranks of a communicator that is being created:
// - where ranks learn or a store is set, all use rank 0's policy;
// - else, where there is a policy or a chained tuner to apply, the ranks of one host verify in
//   shared memory that all have the same policy and the same inputs, or all stay off. Where they
//   cannot (several hosts, tuner API v4 and earlier) each goes by its own.
//
// `communicator` is nullptr where the profiler half is not loaded: verifying does not need it.
// `progress` says whether this rank may still step aside should anything of its own fail.
Agreement Agree(const Settings& settings, const CommInit& init, const Host& host,
                const CommState* communicator, DecisionInputs inputs, const OwnPolicy& own,
                agree::JoinProgress* progress);

// This process runs no collectives: its communicators have no other ranks to verify a policy with.
void SetRehearsal(bool on) noexcept;

// How long a call waits for a store that does not answer.
std::chrono::milliseconds StorePatience(const Settings& settings);

}  // namespace diapason::plugin
