#pragma once

#include <optional>
#include <string>

#include "agree/store.h"
#include "base/settings.h"
#include "plugin/chain.h"
#include "plugin/host.h"
#include "policy/policy.h"

namespace diapason::plugin {

class Communicator;

// What the ranks of a new communicator have agreed on.
struct Agreement {
  enum class Kind {
    kAlone,     // nobody was asked: every rank goes by its own settings
    kTogether,  // all ranks do the same
    kOff,       // they could not come together: the library decides
    kLost,      // this rank cannot know what the others do
  };
  Kind kind = Kind::kAlone;
  bool learn = false;
  std::string why;                // for people, where they are not together
  agree::Store* store = nullptr;  // lives as long as the process
  std::string prefix;             // before all cells of the communicator
  std::string job;
  std::optional<policy::Policy> policy;  // everybody's; nullopt: none
};

// Waits, bounded, for the other ranks of a communicator that is being created. `own` is the policy
// this rank would use. The communicator is nullptr where the profiler half is not loaded.
Agreement Agree(const Settings& settings, const Birth& birth, const Host& host,
                const Communicator* communicator, const std::optional<policy::Policy>& own);

}  // namespace diapason::plugin
