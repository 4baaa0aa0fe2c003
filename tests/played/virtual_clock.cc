#include "virtual_clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'767'225'600 * kSecond;  // 2026-01-01

std::atomic<bool> g_virtual{false};
std::atomic<int64_t> g_now{0};
thread_local bool t_main = false;

}  // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  if (g_virtual && clock == CLOCK_REALTIME) {
    const int64_t now = kStart + g_now;
    *time = {now / kSecond, now % kSecond};
    return 0;
  }
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (t_main && clock == CLOCK_MONOTONIC && result == 0) {
    const int64_t sum = time->tv_sec * kSecond + time->tv_nsec + g_now;
    *time = {sum / kSecond, sum % kSecond};
  }
  return result;
}

namespace played {

void UseVirtualClock() {
  g_virtual = true;
  t_main = true;
}
void SetVirtualTime(int64_t nanoseconds) { g_now = nanoseconds; }

}  // namespace played
