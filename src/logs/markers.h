#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace diapason::logs {

// Looks for any of several words at a time. A text that holds none is passed over in strides of
// several bytes (the method of Wu and Manber, with blocks of two bytes): one pass finds what would
// take one for each word.
class Markers {
 public:
  // REQUIRES: each has at least 8 characters; the first 8 count.
  explicit Markers(const std::vector<std::string_view>& words);
  // Where the first begins; `end` for none.
  const char* Find(const char* begin, const char* end) const;

 private:
  static constexpr size_t kWindow = 8;
  std::vector<uint64_t> words_;
  std::array<uint8_t, 65536> shift_;  // by two bytes: how far the window may move on
};

}  // namespace diapason::logs
