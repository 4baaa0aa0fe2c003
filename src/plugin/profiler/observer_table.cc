#include "plugin/profiler/observer_table.h"

#include <time.h>

#include <array>

namespace diapason::plugin {
namespace {

enum EntryPhase : uint64_t { kFree, kClaimed, kLive };
constexpr int kPhaseBits = 2;

constexpr int kSlotBits = 12;
static_assert(1u << kSlotBits == ObserverTable::kSlots);
// A context has 44 bits: the slot, and its use count.
constexpr uint64_t kUseMask = (uint64_t{1} << (44 - kSlotBits)) - 1;

// Slots are taken in turn from this many, so that a job that creates and destroys one communicator
// after the other uses little memory; from all slots when these are in use.
constexpr uint32_t kUsualSlots = 256;

constinit std::array<Observed, ObserverTable::kSlots> g_slots;
constinit std::atomic<uint32_t> g_next{0};

uint64_t State(uint64_t use, EntryPhase phase) { return (use & kUseMask) << kPhaseBits | phase; }

uint64_t ContextOf(const Observed* slot, uint64_t use) {
  return (use & kUseMask) << kSlotBits | static_cast<uint64_t>(slot - g_slots.data());
}
Observed* SlotOf(uint64_t context) { return &g_slots[context & (ObserverTable::kSlots - 1)]; }
uint64_t UseOf(uint64_t context) { return (context >> kSlotBits) & kUseMask; }

bool TryClaim(Observed* slot) {
  uint64_t state = slot->state.load(std::memory_order_acquire);
  if ((state & ((1u << kPhaseBits) - 1)) != kFree) return false;
  return slot->state.compare_exchange_strong(state, State((state >> kPhaseBits) + 1, kClaimed));
}

}  // namespace

Observed* ObserverTable::Claim() noexcept {
  const uint32_t from = g_next.fetch_add(1, std::memory_order_relaxed);
  for (uint32_t i = 0; i < kUsualSlots; ++i) {
    Observed* slot = &g_slots[(from + i) % kUsualSlots];
    if (TryClaim(slot)) return slot;
  }
  for (uint32_t i = kUsualSlots; i < kSlots; ++i) {
    if (TryClaim(&g_slots[i])) return &g_slots[i];
  }
  return nullptr;
}

uint64_t ObserverTable::GoLive(Observed* slot) noexcept {
  const uint64_t use = slot->state.load(std::memory_order_relaxed) >> kPhaseBits;
  slot->state.store(State(use, kLive));
  return ContextOf(slot, use);
}

bool ObserverTable::Close(uint64_t context, Observed** slot) noexcept {
  Observed* found = SlotOf(context);
  uint64_t live = State(UseOf(context), kLive);
  if (!found->state.compare_exchange_strong(live, State(UseOf(context), kClaimed))) return false;
  *slot = found;
  return true;
}

bool ObserverTable::WaitUntilEmpty(Observed* slot, int limit_ms) noexcept {
  // Observers do not block, so this ends at once unless the other thread was descheduled.
  for (int i = 0; slot->inside.load() != 0; ++i) {
    if (i >= limit_ms) return false;
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

void ObserverTable::Free(Observed* slot) noexcept {
  slot->comm_observer = nullptr;
  const uint64_t use = slot->state.load(std::memory_order_relaxed) >> kPhaseBits;
  slot->state.store(State(use, kFree));
}

// A visitor increments the counter and then reads the state; Close changes the state and then reads
// the counter. So either the visitor sees that the slot is closed, or Close sees the visitor.
ObserverTable::Visit::Visit(uint64_t context) noexcept : slot_(SlotOf(context)) {
  slot_->inside.fetch_add(1);
  live_ = slot_->state.load() == State(UseOf(context), kLive);
}

ObserverTable::Visit::~Visit() { slot_->inside.fetch_sub(1); }

}  // namespace diapason::plugin
