#pragma once

#include <atomic>
#include <cstdint>

#include "plugin/profiler/comm_observer.h"
#include "plugin/profiler/gpu_clock.h"

namespace diapason::plugin {

// One communicator that is observed.
struct alignas(64) Observed {
  // Written before the context is handed out and after the last event has left it.
  CommObserver* comm_observer = nullptr;
  int* mask = nullptr;
  int api = 0;
  int64_t ranks = 0;

  GpuClock clock;
  // How much work the communicator may have given to the GPU by now, at most.
  std::atomic<uint64_t> works{0};
  // That number when the group began which is being put together now.
  std::atomic<uint64_t> works_before_group{0};
  // Something was launched since the last call: the next one begins a group.
  std::atomic<bool> launched{true};
  // Finished runs whose times are in doubt; a hint that there may be any.
  std::atomic<bool> doubts{false};

  // The table's own.
  std::atomic<uint64_t> state{0};   // how often the slot was used, and whether it is in use
  std::atomic<uint32_t> inside{0};  // callbacks at work in it
};

// The slots of all communicators. They are never freed: a context that is used after its end finds
// its slot in another's hands, and is told so. Freed slots are used again as late as possible.
class ObserverTable {
 public:
  static constexpr uint32_t kSlots = 4096;

  // A slot nobody uses, to be filled in; nullptr: there is none.
  static Observed* Claim() noexcept;
  // Events may come from now on. The context: a number for MakeHandle.
  static uint64_t GoLive(Observed* slot) noexcept;
  // For a claimed slot that is not wanted after all.
  static void GiveUp(Observed* slot) noexcept;

  // No event enters any more. False: not a live context. Exactly one caller is handed the slot.
  static bool Close(uint64_t context, Observed** slot) noexcept;
  // Waits until the last event has left. False: one did not within the limit.
  static bool WaitUntilEmpty(Observed* slot, int limit_ms) noexcept;
  static void Free(Observed* slot) noexcept;

  // While it is alive and not null, the communicator's fields may be used.
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
