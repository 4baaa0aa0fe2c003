#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace diapason::logs {

// Searches for several words at once. Text without any of them is skipped several bytes at a time
// (the algorithm of Wu and Manber, with blocks of two bytes).
class Markers {
 public:
  // REQUIRES: each has at least 8 characters; the first 8 are used.
  explicit Markers(const std::vector<std::string_view>& words);
  // The position of the first match; `end` for none.
  const char* Find(const char* begin, const char* end) const;

 private:
  static constexpr size_t kWindow = 8;
  std::vector<uint64_t> words_;
  std::array<uint8_t, 65536> shift_;  // by two bytes: how far the window may move
};

}  // namespace diapason::logs
