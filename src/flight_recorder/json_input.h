#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace diapason::flight_recorder {

// The characters of a file, with bounded memory for the parser: strings are truncated, and
// excessive nesting ends the input.
class Characters {
 public:
  static constexpr size_t kLongestString = 65536;
  static constexpr int kDeepest = 64;

  Characters(int fd, std::string_view start) : fd_(fd), buffer_(start) {}

  // -1 at the end.
  int Next() {
    for (;;) {
      if (at_ == buffer_.size() && !Refill()) return -1;
      const auto c = static_cast<unsigned char>(buffer_[at_++]);
      if (in_string_) {
        const bool ends = c == '"' && !escaped_;
        escaped_ = c == '\\' && !escaped_;
        if (ends) {
          in_string_ = false;
          return c;
        }
        // Truncated between characters, and never inside an escape.
        if (++length_ > kLongestString) {
          if (cutting_ || (!escaped_ && (c & 0xc0) != 0x80 && last_ != '\\')) cutting_ = true;
          if (cutting_) continue;
          if (length_ > kLongestString + 16) cutting_ = true;
        }
        last_ = c;
        return c;
      }
      if (c == '"') {
        in_string_ = true;
        cutting_ = false;
        escaped_ = false;
        length_ = 0;
        last_ = 0;
      } else if (c == '[' || c == '{') {
        if (++depth_ > kDeepest) {
          too_deep_ = true;
          return -1;
        }
      } else if (c == ']' || c == '}') {
        --depth_;
      } else if (c > ' ' && c != ',' && c != ':') {
        // Numbers and literals are short.
        if (++letters_ > 256) continue;
        return c;
      }
      letters_ = 0;
      return c;
    }
  }
  bool too_deep() const { return too_deep_; }
  int error() const { return error_; }

 private:
  bool Refill() {
    if (too_deep_ || ended_ || fd_ < 0) return false;
    buffer_.resize(1 << 16);
    ssize_t got = 0;
    do {
      got = read(fd_, buffer_.data(), buffer_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) error_ = errno;
    if (got <= 0) {
      ended_ = true;
      buffer_.clear();
      at_ = 0;
      return false;
    }
    buffer_.resize(static_cast<size_t>(got));
    at_ = 0;
    return true;
  }

  int fd_;
  std::string buffer_;
  size_t at_ = 0;
  bool ended_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
  bool cutting_ = false;
  bool too_deep_ = false;
  unsigned char last_ = 0;
  size_t length_ = 0;
  size_t letters_ = 0;
  int depth_ = 0;
  int error_ = 0;
};

// An input iterator over them, as the JSON library expects.
class CharacterIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CharacterIterator() = default;
  explicit CharacterIterator(Characters* characters) : characters_(characters) { ++*this; }
  reference operator*() const { return current_; }
  CharacterIterator& operator++() {
    const int next = characters_->Next();
    if (next < 0) {
      characters_ = nullptr;
    } else {
      current_ = static_cast<char>(next);
    }
    return *this;
  }
  bool operator==(const CharacterIterator& other) const { return characters_ == other.characters_; }
  bool operator!=(const CharacterIterator& other) const { return !(*this == other); }

 private:
  Characters* characters_ = nullptr;
  char current_ = 0;
};

}  // namespace diapason::flight_recorder
