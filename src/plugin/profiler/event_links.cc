#include "plugin/profiler/event_links.h"

#include <array>

#include "plugin/profiler/event_handle.h"
#include "plugin/profiler/observer_table.h"

namespace diapason::plugin {
namespace {

enum Phase : uint64_t { kFree, kOpening, kLive, kStopped };
constexpr int kPhaseBits = 2;
constexpr uint64_t kPhaseMask = (1u << kPhaseBits) - 1;

constexpr int kKindBits = 2;
constexpr int kNumberBits = kHandlePayloadBits - kKindBits;
constexpr uint64_t kNumberMask = (uint64_t{1} << kNumberBits) - 1;

// Every field is atomic: a late reader may look while a new link is written. It discards what it
// read, because `state` has changed.
struct alignas(64) Entry {
  std::atomic<uint64_t> state{0};  // the link's number and its phase
  std::atomic<void*> own{nullptr};
  std::atomic<void*> second{nullptr};
  std::atomic<uint64_t> context{0};
  std::atomic<int> mask{0};
};

// Zero pages until they are used: without a second profiler they cost nothing.
constexpr uint64_t kCalls = 1u << 16;
constexpr uint64_t kCaptured = 1u << 14;
constexpr uint64_t kParts = 1u << 16;
constinit std::array<Entry, kCalls> g_calls;
constinit std::array<Entry, kCaptured> g_captured;
constinit std::array<Entry, kParts> g_parts;
constinit std::array<std::atomic<uint64_t>, 3> g_next{};

// Places in use that are passed over before an event is given up.
constexpr int kTries = 512;

constexpr auto kRelaxed = std::memory_order_relaxed;

Entry* EntryOf(EventLinks::Kind kind, uint64_t number) noexcept {
  switch (kind) {
    case EventLinks::Kind::kCall:
      return &g_calls[number % kCalls];
    case EventLinks::Kind::kCaptured:
      return &g_captured[number % kCaptured];
    case EventLinks::Kind::kPart:
      return &g_parts[number % kParts];
  }
  return nullptr;
}

uint64_t PlaceOf(EventLinks::Kind kind, uint64_t number) noexcept {
  return static_cast<uint64_t>(kind) << kNumberBits | number;
}
uint64_t NumberOf(uint64_t place) noexcept { return place & kNumberMask; }
// nullptr: no such kind.
Entry* EntryAt(uint64_t place) noexcept {
  const uint64_t kind = place >> kNumberBits;
  if (kind > static_cast<uint64_t>(EventLinks::Kind::kPart)) return nullptr;
  return EntryOf(static_cast<EventLinks::Kind>(kind), NumberOf(place));
}

bool Reusable(EventLinks::Kind kind, const Entry& entry, uint64_t state) noexcept {
  const uint64_t phase = state & kPhaseMask;
  if (phase == kFree) return true;
  if (phase == kOpening) return false;
  if (phase == kStopped && kind != EventLinks::Kind::kCaptured) return true;
  const uint64_t context = entry.context.load(kRelaxed);
  return context != 0 && !ObserverTable::Visit(context);
}

bool Linked(uint64_t state, uint64_t number) noexcept {
  const uint64_t phase = state & kPhaseMask;
  return state >> kPhaseBits == number && (phase == kLive || phase == kStopped);
}

}  // namespace

uint64_t EventLinks::Claim(Kind kind) noexcept {
  std::atomic<uint64_t>& next = g_next[static_cast<size_t>(kind)];
  for (int i = 0; i < kTries; ++i) {
    // Never 0, so that a place is not 0.
    const uint64_t number = next.fetch_add(1, kRelaxed) % kNumberMask + 1;
    Entry* entry = EntryOf(kind, number);
    uint64_t state = entry->state.load(std::memory_order_acquire);
    if (!Reusable(kind, *entry, state)) continue;
    if (entry->state.compare_exchange_strong(state, number << kPhaseBits | kOpening)) {
      return PlaceOf(kind, number);
    }
  }
  return kind == Kind::kCaptured ? Claim(Kind::kCall) : 0;
}

void* EventLinks::Publish(uint64_t place, const Link& link) noexcept {
  Entry* entry = EntryAt(place);
  entry->own.store(link.own, kRelaxed);
  entry->second.store(link.second, kRelaxed);
  entry->context.store(link.context, kRelaxed);
  entry->mask.store(link.mask, kRelaxed);
  entry->state.store(NumberOf(place) << kPhaseBits | kLive, std::memory_order_release);
  return MakeHandle(HandleKind::kLink, place);
}

void EventLinks::Abandon(uint64_t place) noexcept {
  EntryAt(place)->state.store(NumberOf(place) << kPhaseBits | kFree, std::memory_order_release);
}

bool EventLinks::IsLink(void* handle) noexcept {
  uint64_t place = 0;
  return ReadHandle(handle, HandleKind::kLink, &place);
}

bool EventLinks::Read(void* handle, Link* link) noexcept {
  uint64_t place = 0;
  if (!ReadHandle(handle, HandleKind::kLink, &place)) return false;
  const Entry* entry = EntryAt(place);
  if (entry == nullptr) return false;
  if (!Linked(entry->state.load(std::memory_order_acquire), NumberOf(place))) return false;
  // Acquire: the second look at the state must not come before any of these.
  link->own = entry->own.load(std::memory_order_acquire);
  link->second = entry->second.load(std::memory_order_acquire);
  link->context = entry->context.load(std::memory_order_acquire);
  link->mask = entry->mask.load(std::memory_order_acquire);
  return Linked(entry->state.load(kRelaxed), NumberOf(place));
}

void EventLinks::Stop(void* handle) noexcept {
  uint64_t place = 0;
  if (!ReadHandle(handle, HandleKind::kLink, &place)) return;
  Entry* entry = EntryAt(place);
  if (entry == nullptr) return;
  uint64_t live = NumberOf(place) << kPhaseBits | kLive;
  entry->state.compare_exchange_strong(live, NumberOf(place) << kPhaseBits | kStopped);
}

}  // namespace diapason::plugin
