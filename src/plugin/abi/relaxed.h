#pragma once

#include <atomic>

namespace diapason::plugin {

// A value that one thread after another changes, because the library takes turns for us, and that
// others may look at meanwhile. Costs what a plain variable costs.
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
