#pragma once

#include <atomic>
#include <cstdint>

#include "plugin/profiler/comm_observer.h"
#include "plugin/profiler/gpu_clock.h"

namespace diapason::plugin {

// One communicator that is observed.
struct alignas(64) Observed {
  // Written before the context is published and after the last event has left it.
  CommObserver* comm_observer = nullptr;
  int* mask = nullptr;
  int api = 0;
  int64_t ranks = 0;
  bool has_second = false;         // a second profiler has this communicator too
  void* second_context = nullptr;  // as that profiler calls it

  GpuClock clock;
  // Upper bound on the pieces of work that the communicator has enqueued on the GPU.
  std::atomic<uint64_t> works{0};
  // The value of `works` when the current group began.
  std::atomic<uint64_t> works_before_group{0};
  // A kernel was launched since the last call: the next call begins a group.
  std::atomic<bool> launched{true};
  // A hint that there may be finished runs with uncertain times.
  std::atomic<bool> doubts{false};

  // Used by the table only.
  std::atomic<uint64_t> state{0};   // how often the slot was used, and whether it is in use
  std::atomic<uint32_t> inside{0};  // callbacks at work in it
};

// The slots of all communicators. They are never freed: a context that is used after its end is
// recognised as stale, even if its slot is in use again. Freed slots are reused as late as
// possible.
class ObserverTable {
 public:
  static constexpr uint32_t kSlots = 4096;

  // A free slot, to be filled in; nullptr: there is none.
  static Observed* Claim() noexcept;
  // Enables events for the slot. Returns the context: a payload for MakeHandle.
  static uint64_t GoLive(Observed* slot) noexcept;

  // Disables events. False: not a live context. Exactly one caller receives the slot.
  static bool Close(uint64_t context, Observed** slot) noexcept;
  // Waits until the last event has left. False: the limit was reached.
  static bool WaitUntilEmpty(Observed* slot, int limit_ms) noexcept;
  static void Free(Observed* slot) noexcept;

  // While a Visit exists and is not null, the communicator's fields may be used.
  class Visit {
   public:
    explicit Visit(uint64_t context) noexcept;
    ~Visit();
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    explicit operator bool() const { return live_; }
    Observed* operator->() const { return slot_; }

   private:
    Observed* slot_;
    bool live_;
  };
};

}  // namespace diapason::plugin
