#include "plugin/profiler/gpu_clock.h"

namespace diapason::plugin {
namespace {

constexpr double kRcclNsPerTick = 10;  // 100 MHz
constexpr double kClearlyDifferent = 0.2;
// In shorter intervals the delay with which stamps are found would distort the rate.
constexpr uint64_t kShortestNs = 100'000'000;
constexpr uint64_t kLongestNs = 10'000'000'000;

}  // namespace

void GpuClock::Reset(Library library) noexcept {
  const bool ticks = library == Library::kRccl;
  first_host_ns_.store(0, std::memory_order_relaxed);
  first_stamp_.store(0, std::memory_order_relaxed);
  ns_per_tick_.store(ticks ? kRcclNsPerTick : 1, std::memory_order_relaxed);
  learning_.store(ticks, std::memory_order_relaxed);
}

void GpuClock::Observe(uint64_t stamp, uint64_t host_ns) noexcept {
  if (!Learning() || stamp == 0 || host_ns == 0) return;
  uint64_t first_stamp = 0;
  if (first_stamp_.compare_exchange_strong(first_stamp, stamp, std::memory_order_acq_rel)) {
    first_host_ns_.store(host_ns, std::memory_order_release);
    return;
  }
  const uint64_t first_host_ns = first_host_ns_.load(std::memory_order_acquire);
  if (first_host_ns == 0 || host_ns < first_host_ns || stamp <= first_stamp) return;
  const uint64_t elapsed = host_ns - first_host_ns;
  if (elapsed < kShortestNs) return;
  const double measured = static_cast<double>(elapsed) / static_cast<double>(stamp - first_stamp);
  const double deviation = measured / kRcclNsPerTick - 1;
  const bool different = deviation > kClearlyDifferent || deviation < -kClearlyDifferent;
  ns_per_tick_.store(different ? measured : kRcclNsPerTick, std::memory_order_relaxed);
  if (elapsed >= kLongestNs) learning_.store(false, std::memory_order_relaxed);
}

uint64_t GpuClock::Nanoseconds(uint64_t ticks) const noexcept {
  const double scale = ns_per_tick_.load(std::memory_order_relaxed);
  if (scale == 1) return ticks;
  const double ns = static_cast<double>(ticks) * scale;
  return ns < 0x1p63 ? static_cast<uint64_t>(ns) : uint64_t{1} << 63;
}

}  // namespace diapason::plugin
