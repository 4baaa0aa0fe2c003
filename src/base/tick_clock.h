#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace diapason {

// Time stamps for calls that take about a microsecond, where two reads of the system clock (25 ns
// each) would matter: the processor's time stamp counter if the kernel itself uses it, the system
// clock otherwise. Only differences of ticks are meaningful.
class TickClock {
 public:
  // The first call in a process takes about two milliseconds: it calibrates the tick.
  static const TickClock& Get();

  uint64_t Now() const {
#if defined(__x86_64__)
    if (counter_) return __rdtsc();
#endif
    return SystemNow();
  }
  // A signed conversion is one instruction, an unsigned one a branch and several.
  double Seconds(uint64_t ticks) const {
    return static_cast<double>(static_cast<int64_t>(ticks)) * seconds_per_tick_;
  }
  uint64_t Ticks(double seconds) const {
    return static_cast<uint64_t>(seconds / seconds_per_tick_);
  }

 private:
  TickClock();
  static uint64_t SystemNow();  // nanoseconds

  bool counter_ = false;
  double seconds_per_tick_ = 1e-9;
};

}  // namespace diapason
