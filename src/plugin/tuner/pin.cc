#include "plugin/tuner/pin.h"

namespace diapason::plugin {
namespace {

constexpr uint64_t kActive = uint64_t{1} << 63;

}  // namespace

constinit PinnedChoice PinnedChoice::instance_;

bool PinnedChoice::Set(int algorithm, int protocol, int channels) {
  // Wider than today's tables: newer libraries may have more pairs. A pair that a table does not
  // have is refused at the call.
  if (algorithm < kKeep || algorithm > 15 || protocol < kKeep || protocol > 7 || channels < 0 ||
      channels > ChannelLimit(Library::kRccl)) {
    return false;
  }
  asked_.store(0, std::memory_order_relaxed);
  applied_.store(0, std::memory_order_relaxed);
  word_.store(kActive | static_cast<uint64_t>(algorithm + 1) << 16 |
                  static_cast<uint64_t>(protocol + 1) << 8 | static_cast<uint64_t>(channels),
              std::memory_order_relaxed);
  return true;
}

}  // namespace diapason::plugin
