#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diapason::messages {

// Searches for several hundred texts at once. Text without any of them is skipped several bytes at
// a time (the algorithm of Wu and Manber, with blocks of three bytes), so that more texts hardly
// cost more. Immutable after construction; may be used by several threads.
class Matcher {
 public:
  // The shortest text that can be searched for.
  static constexpr size_t kShortest = 8;

  // REQUIRES: each has at least kShortest characters.
  explicit Matcher(std::vector<std::string> texts);

  // The start of the first match; `end` for none.
  const char* First(const char* begin, const char* end) const;
  // Adds the numbers of all texts that occur in `text`, each once.
  void All(std::string_view text, std::vector<uint32_t>* found) const;

 private:
  struct Window {
    uint64_t bytes = 0;
    uint32_t text = 0;
    uint32_t offset = 0;  // of the window in the text
  };
  // Calls `match(start, text)` for each match until it returns false.
  template <typename OnMatch>
  void Scan(const char* begin, const char* end, const OnMatch& match) const;

  static constexpr size_t kSlots = 1 << 16;
  std::vector<std::string> texts_;
  std::vector<Window> windows_;        // sorted by bytes
  std::array<bool, kSlots> possible_;  // by a hash of a window: whether one of windows_ has it
  std::array<uint8_t, kSlots> shift_;  // by three bytes: how far the window may move
};

}  // namespace diapason::messages
