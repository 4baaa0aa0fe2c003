#pragma once

#include <atomic>

namespace diapason::plugin {

// A value with one writer at a time (NCCL serialises the calls that write it) that other threads
// may read meanwhile. Costs the same as a plain variable.
template <typename T>
class Relaxed {
 public:
  Relaxed() = default;
  explicit Relaxed(T value) : value_(value) {}
  operator T() const noexcept {  // NOLINT: stands for its value
    return value_.load(std::memory_order_relaxed);
  }
  Relaxed& operator=(T value) noexcept {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }

 private:
  std::atomic<T> value_{};
};

}  // namespace diapason::plugin
