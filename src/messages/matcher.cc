#include "messages/matcher.h"

#include <algorithm>
#include <cstring>

namespace diapason::messages {
namespace {

constexpr size_t kWindow = Matcher::kShortest;
constexpr size_t kBlock = 3;

size_t Slot(const char* at) {
  const uint32_t bytes = static_cast<unsigned char>(at[0]) |
                         static_cast<uint32_t>(static_cast<unsigned char>(at[1])) << 8 |
                         static_cast<uint32_t>(static_cast<unsigned char>(at[2])) << 16;
  return (bytes * 0x9e3779b1U) >> 16;
}

uint64_t Bytes(const char* at) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

size_t WindowSlot(uint64_t bytes) { return (bytes * 0x9e3779b97f4a7c15ULL) >> 48; }

// How often the characters of a window occur in logs: a window of rare ones stops the search less.
int Commonness(std::string_view window) {
  int sum = 0;
  for (const char c : window) {
    if (c == ' ' || std::strchr("etaoinsr0123", c) != nullptr) {
      sum += 3;
    } else if (c >= 'a' && c <= 'z') {
      sum += 2;
    } else {
      sum += 1;
    }
  }
  return sum;
}

size_t BestWindow(std::string_view text) {
  size_t best = 0;
  int least = INT32_MAX;
  for (size_t i = 0; i + kWindow <= text.size(); ++i) {
    const int sum = Commonness(text.substr(i, kWindow));
    if (sum >= least) continue;
    least = sum;
    best = i;
  }
  return best;
}

}  // namespace

Matcher::Matcher(std::vector<std::string> texts) : texts_(std::move(texts)), possible_(), shift_() {
  shift_.fill(kWindow - kBlock + 1);
  for (size_t i = 0; i < texts_.size(); ++i) {
    const size_t offset = BestWindow(texts_[i]);
    const char* window = texts_[i].data() + offset;
    windows_.push_back({Bytes(window), static_cast<uint32_t>(i), static_cast<uint32_t>(offset)});
    possible_[WindowSlot(Bytes(window))] = true;
    for (size_t b = 0; b + kBlock <= kWindow; ++b) {
      uint8_t& shift = shift_[Slot(window + b)];
      shift = std::min(shift, static_cast<uint8_t>(kWindow - kBlock - b));
    }
  }
  std::sort(windows_.begin(), windows_.end(),
            [](const Window& a, const Window& b) { return a.bytes < b.bytes; });
}

template <typename OnMatch>
void Matcher::Scan(const char* begin, const char* end, const OnMatch& match) const {
  if (end - begin < static_cast<std::ptrdiff_t>(kWindow)) return;
  const char* last = end - kBlock;  // the last position for the last block of a window
  for (const char* at = begin + kWindow - kBlock; at <= last;) {
    const uint8_t shift = shift_[Slot(at)];
    if (shift > 0) {
      at += shift;
      continue;
    }
    const char* start = at - (kWindow - kBlock);
    const uint64_t bytes = Bytes(start);
    if (!possible_[WindowSlot(bytes)]) {
      ++at;
      continue;
    }
    auto window = std::lower_bound(windows_.begin(), windows_.end(), bytes,
                                   [](const Window& a, uint64_t b) { return a.bytes < b; });
    for (; window != windows_.end() && window->bytes == bytes; ++window) {
      const std::string& text = texts_[window->text];
      if (start - begin < static_cast<std::ptrdiff_t>(window->offset)) continue;
      const char* first = start - window->offset;
      if (static_cast<size_t>(end - first) < text.size()) continue;
      if (std::memcmp(first, text.data(), text.size()) != 0) continue;
      if (!match(first, window->text)) return;
    }
    ++at;
  }
}

const char* Matcher::First(const char* begin, const char* end) const {
  const char* found = end;
  Scan(begin, end, [&](const char* start, uint32_t) {
    found = start;
    return false;
  });
  return found;
}

void Matcher::All(std::string_view text, std::vector<uint32_t>* found) const {
  Scan(text.data(), text.data() + text.size(), [&](const char*, uint32_t number) {
    if (std::find(found->begin(), found->end(), number) == found->end()) found->push_back(number);
    return true;
  });
}

}  // namespace diapason::messages
