#include "logs/markers.h"

#include <algorithm>
#include <cstring>

namespace diapason::logs {
namespace {

size_t Pair(const char* at) {
  return static_cast<size_t>(static_cast<unsigned char>(at[0])) << 8 |
         static_cast<unsigned char>(at[1]);
}

}  // namespace

Markers::Markers(const std::vector<std::string_view>& words) : shift_() {
  shift_.fill(kWindow - 1);
  for (const std::string_view word : words) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, word.data(), kWindow);
    words_.push_back(bytes);
    for (size_t i = 0; i + 1 < kWindow; ++i) {
      uint8_t& shift = shift_[Pair(word.data() + i)];
      shift = std::min(shift, static_cast<uint8_t>(kWindow - 2 - i));
    }
  }
}

const char* Markers::Find(const char* begin, const char* end) const {
  if (end - begin < static_cast<std::ptrdiff_t>(kWindow)) return end;
  const char* last = end - 2;  // the last position for the last two bytes of a window
  for (const char* at = begin + kWindow - 2; at <= last;) {
    const uint8_t shift = shift_[Pair(at)];
    if (shift > 0) {
      at += shift;
      continue;
    }
    uint64_t window = 0;
    const char* start = at - (kWindow - 2);
    std::memcpy(&window, start, kWindow);
    if (std::find(words_.begin(), words_.end(), window) != words_.end()) return start;
    ++at;
  }
  return end;
}

}  // namespace diapason::logs
