#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "base/status.h"
#include "comm/backends/nccl/library.h"
#include "comm/communicator.h"
#include "diapason/config.h"
#include "domain/vocabulary.h"

namespace diapason::comm::nccl {

// The diapason tuner plugin in this process, through the functions of diapason/diapason.h, if the
// library has loaded it. A pin applies to every communicator of the process, so it is held for one
// call at a time.
class PluginPin {
 public:
  // Makes the library load the diapason plugin with its next communicator, unless the environment
  // names another.
  static void AskForPlugin();

  // Looks up the plugin; CanUse reports why there is none.
  static PluginPin Find(const NcclApi& api);

  // Whether such a pin for such a call can work on any machine.
  Status CanUse(Operation operation, const Config& config, int ranks) const;

  // While in scope, every question of the library is answered with the pin.
  class Hold {
   public:
    Hold(const PluginPin& pin, const Config& config, Deadline deadline);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    const Status& status() const { return status_; }
    // After the call: OK if every question was answered with the pin.
    Status Applied(const std::string& what) const;

   private:
    const PluginPin& pin_;
    std::unique_lock<std::timed_mutex> lock_;
    Status status_;
  };

 private:
  const NcclApi* api_ = nullptr;
  std::string reason_;  // why pinning is impossible; empty if it is possible
  int (*pin_)(int, int, int) = nullptr;
  void (*unpin_)() = nullptr;
  void (*counts_)(unsigned long long*, unsigned long long*) = nullptr;
};

}  // namespace diapason::comm::nccl
