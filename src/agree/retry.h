#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "agree/store.h"

namespace diapason::agree {

// Repeats a step of a store after a lost connection or a temporary error, with growing pauses, as
// long as there is time. `step` returns a Status.
template <typename Step>
Status RetryUntil(Deadline deadline, const Step& step) {
  constexpr std::chrono::microseconds kFirst(500);
  constexpr std::chrono::microseconds kLongest(100000);
  for (auto pause = kFirst;; pause = std::min(2 * pause, kLongest)) {
    Status done = step();
    if (!Retryable(done) || std::chrono::steady_clock::now() + pause >= deadline) return done;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace diapason::agree
