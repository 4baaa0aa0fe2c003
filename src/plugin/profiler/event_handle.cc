#include "plugin/profiler/event_handle.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "base/random.h"

namespace diapason::plugin {
namespace {

constinit std::atomic<uint64_t> g_tag{0};

uint64_t DrawTag() noexcept {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits)) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    bits = MixBits(static_cast<uint64_t>(now.tv_nsec) ^ static_cast<uint64_t>(getpid()) << 32);
  }
  const uint64_t upper = 0x80 + bits % 0x7f;      // 0x80 to 0xfe
  const uint64_t lower = 1 + (bits >> 8) % 0xff;  // 0x01 to 0xff
  return upper << 8 | lower;
}

}  // namespace

uint64_t HandleTag() noexcept {
  uint64_t tag = g_tag.load(std::memory_order_relaxed);
  if (tag != 0) return tag;
  uint64_t drawn = DrawTag();
  // The first thread decides for all.
  return g_tag.compare_exchange_strong(tag, drawn, std::memory_order_relaxed) ? drawn : tag;
}

void* MakeHandle(HandleKind kind, uint64_t payload) noexcept {
  const uint64_t word = HandleTag() << 48 | static_cast<uint64_t>(kind) << kHandlePayloadBits |
                        (payload & kHandlePayloadMask);
  return reinterpret_cast<void*>(word);
}

bool IsOwnHandle(void* handle) noexcept {
  return reinterpret_cast<uint64_t>(handle) >> 48 == HandleTag();
}

bool ReadHandle(void* handle, HandleKind kind, uint64_t* payload) noexcept {
  const auto word = reinterpret_cast<uint64_t>(handle);
  if (word >> kHandlePayloadBits != (HandleTag() << 4 | static_cast<uint64_t>(kind))) return false;
  *payload = word & kHandlePayloadMask;
  return true;
}

}  // namespace diapason::plugin
