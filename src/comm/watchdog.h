#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

namespace diapason::comm {

// Bounds calls into libraries without time limits of their own. A group marks the begin and the end
// of every call with a few plain stores and no locked instruction: a locked one, right after a
// library has written to memory it shares with other processes, costs tens of nanoseconds. One
// thread of the process checks four times a second how long each call has been running, and calls
// `expired` for one that is over its limit.
class CallWatch {
 public:
  // The watchdog adds this to the limit of a call, so that the libraries' own time-outs, which give
  // better errors, come first.
  static constexpr std::chrono::milliseconds kGrace{750};

  explicit CallWatch(std::function<void()> expired);
  // Waits for a running `expired`.
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  // REQUIRES: number > 0, and larger than the last one.
  void Begin(uint64_t number, std::chrono::milliseconds limit) {
    limit_.store(limit.count(), std::memory_order_relaxed);
    number_.store(number, std::memory_order_release);
  }
  // False: the call was expired meanwhile.
  bool End() {
    number_.store(0, std::memory_order_release);
    if (!expiring_.load(std::memory_order_relaxed)) return true;
    return Settle();
  }

 private:
  friend class Watchdog;
  // The watchdog suspects this call: waits for its decision.
  bool Settle();

  std::atomic<uint64_t> number_{0};
  std::atomic<bool> expiring_{false};
  std::atomic<int64_t> limit_{0};
  std::function<void()> expired_;
  // Used by the watchdog only.
  uint64_t seen_ = 0;
  bool expired_call_ = false;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace diapason::comm
