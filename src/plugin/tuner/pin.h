#pragma once

#include <atomic>
#include <cstdint>

#include "domain/decision.h"

namespace diapason::plugin {

// The process-wide pin of diapason.h, in one atomic word, so that a reader never sees a mix of two
// pins.
class PinnedChoice {
 public:
  static PinnedChoice& Instance() noexcept { return instance_; }

  // False when a number is out of range.
  bool Set(int algorithm, int protocol, int channels);
  void Clear() { word_.store(kNone, std::memory_order_relaxed); }

  // The pin in one word; kNone: nothing is pinned.
  using Word = uint64_t;
  static constexpr Word kNone = 0;
  Word Get() const noexcept { return word_.load(std::memory_order_relaxed); }
  // REQUIRES: not kNone.
  static Config Unpack(Word word) noexcept {
    return {static_cast<int>(word >> 16 & 255) - 1, static_cast<int>(word >> 8 & 255) - 1,
            static_cast<int>(word & 255)};
  }

  void CountAsked() noexcept { asked_.fetch_add(1, std::memory_order_relaxed); }
  void CountApplied() noexcept { applied_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t asked() const { return asked_.load(std::memory_order_relaxed); }
  uint64_t applied() const { return applied_.load(std::memory_order_relaxed); }

 private:
  static PinnedChoice instance_;
  std::atomic<Word> word_{kNone};
  std::atomic<uint64_t> asked_{0};
  std::atomic<uint64_t> applied_{0};
};

}  // namespace diapason::plugin
