#include "base/tick_clock.h"

#include <chrono>

#include "base/file.h"
#include "base/text.h"

namespace diapason {
namespace {

// The kernel uses the counter for its own clock only if it is constant, never stops and is
// synchronised between processors.
bool KernelTrustsCounter() {
  const Result<std::string> source =
      ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource", 4096);
  return source.ok() && Trim(source.value()) == "tsc";
}

}  // namespace

uint64_t TickClock::SystemNow() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

const TickClock& TickClock::Get() {
  static const TickClock clock;
  return clock;
}

TickClock::TickClock() {
#if defined(__x86_64__)
  if (!KernelTrustsCounter()) return;
  const uint64_t system_start = SystemNow();
  const uint64_t ticks_start = __rdtsc();
  uint64_t system_end = system_start;
  while (system_end - system_start < 2'000'000) system_end = SystemNow();
  const uint64_t ticks = __rdtsc() - ticks_start;
  if (ticks == 0) return;
  counter_ = true;
  seconds_per_tick_ =
      static_cast<double>(system_end - system_start) * 1e-9 / static_cast<double>(ticks);
#endif
}

}  // namespace diapason
