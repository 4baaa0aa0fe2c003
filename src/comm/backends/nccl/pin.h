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

// Our tuner plugin in this process, through the calls of diapason/diapason.h. It is the library
// that has loaded it, if it has; a pin then holds for every communicator of the process, so it is
// held for one call at a time.
class PluginPin {
 public:
  // Has the library load our plugin when it makes its next communicator, where the environment
  // names no other.
  static void AskForPlugin();

  // Looks for the plugin; the reason why there is none is kept for CanUse.
  static PluginPin Find(const NcclApi& api);

  // Whether a call of that kind can be pinned so on any machine.
  Status CanUse(Operation operation, const Config& config, int ranks) const;

  // From here to the end of the scope every question of the library is answered with the pin.
  class Hold {
   public:
    Hold(const PluginPin& pin, const Config& config, Deadline deadline);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    const Status& status() const { return status_; }
    // After the call: fine when every question was answered with the pin.
    Status Applied(const std::string& what) const;

   private:
    const PluginPin& pin_;
    std::unique_lock<std::timed_mutex> lock_;
    Status status_;
  };

 private:
  const NcclApi* api_ = nullptr;
  std::string reason_;  // why nothing can be pinned; empty when it can
  int (*pin_)(int, int, int) = nullptr;
  void (*unpin_)() = nullptr;
  void (*counts_)(unsigned long long*, unsigned long long*) = nullptr;
};

}  // namespace diapason::comm::nccl
