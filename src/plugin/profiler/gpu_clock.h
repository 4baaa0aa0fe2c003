#pragma once

#include <atomic>
#include <cstdint>

#include "domain/vocabulary.h"

namespace diapason::plugin {

// Converts time stamps of a GPU into nanoseconds. NCCL's are nanoseconds. RCCL's are ticks of the
// GPU's wall clock, 100 MHz on all GPUs known so far. The library does not report the rate, so the
// stamps are compared with the host's clock, and a clearly different rate is used instead.
//
// Any thread may call any function.
class GpuClock {
 public:
  // Called for a new communicator, of any library.
  void Reset(Library library) noexcept;

  // Whether Observe can still refine the rate; if not, the host's clock need not be read.
  bool Learning() const noexcept { return learning_.load(std::memory_order_relaxed); }
  // A stamp that has just arrived, and the host's clock at that moment. The stamp may be older by
  // the time the library took to find it.
  void Observe(uint64_t stamp, uint64_t host_ns) noexcept;

  // Converts a duration.
  uint64_t Nanoseconds(uint64_t ticks) const noexcept;

 private:
  std::atomic<bool> learning_{false};
  std::atomic<double> ns_per_tick_{1};
  std::atomic<uint64_t> first_stamp_{0};
  std::atomic<uint64_t> first_host_ns_{0};
};

}  // namespace diapason::plugin
