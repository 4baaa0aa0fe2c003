#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace diapason::journal {

// A bounded queue from many threads to one. Push neither waits nor allocates: it returns false when
// the ring is full, and the caller counts the loss. The classic bounded queue with a sequence
// number per slot.
template <typename T>
class Ring {
 public:
  // Rounded up to a power of two; with a single slot "full" and "empty" would be indistinguishable.
  explicit Ring(size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? size_t{2} : capacity) - 1), slots_(new Slot[mask_ + 1]) {
    for (size_t i = 0; i <= mask_; ++i) slots_[i].sequence.store(i, std::memory_order_relaxed);
  }

  // Any thread.
  bool Push(const T& value) noexcept {
    uint64_t position = tail_.load(std::memory_order_relaxed);
    while (true) {
      Slot& slot = slots_[position & mask_];
      const uint64_t sequence = slot.sequence.load(std::memory_order_acquire);
      if (sequence == position) {
        if (tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          slot.value = value;
          slot.sequence.store(position + 1, std::memory_order_release);
          return true;
        }
      } else if (sequence < position) {
        return false;  // the slot still holds an unread value of the previous round
      } else {
        position = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  // One thread at a time.
  bool Pop(T* value) noexcept {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    Slot& slot = slots_[head & mask_];
    if (slot.sequence.load(std::memory_order_acquire) != head + 1) return false;
    *value = slot.value;
    slot.sequence.store(head + mask_ + 1, std::memory_order_release);
    head_.store(head + 1, std::memory_order_relaxed);
    return true;
  }

  // The total number of pushes.
  uint64_t pushed() const { return tail_.load(std::memory_order_acquire); }

 private:
  struct Slot {
    std::atomic<uint64_t> sequence;
    T value;
  };
  const size_t mask_;
  std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(64) std::atomic<uint64_t> head_{0};
};

}  // namespace diapason::journal
