#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace diapason::flight_recorder {

// The bytes of a file: `start` followed by the contents of `fd`, if not negative.
class ByteSource {
 public:
  ByteSource(int fd, std::string_view start) : fd_(fd), block_(start) {}

  bool Byte(uint8_t* byte) {
    if (at_ == block_.size() && !Refill()) return false;
    *byte = static_cast<uint8_t>(block_[at_++]);
    return true;
  }
  // Little-endian.
  bool Number(int bytes, uint64_t* number) {
    *number = 0;
    for (int i = 0; i < bytes; ++i) {
      uint8_t byte = 0;
      if (!Byte(&byte)) return false;
      *number |= static_cast<uint64_t>(byte) << (8 * i);
    }
    return true;
  }
  // `length` bytes, of which the first `most` are kept.
  bool Text(uint64_t length, size_t most, std::string* text) {
    text->clear();
    while (length > 0) {
      if (at_ == block_.size() && !Refill()) return false;
      const size_t have = block_.size() - at_;
      const size_t take = length < have ? static_cast<size_t>(length) : have;
      if (text->size() < most) text->append(block_, at_, std::min(take, most - text->size()));
      at_ += take;
      length -= take;
    }
    return true;
  }
  // Up to the next line feed, which is skipped.
  bool Line(size_t most, std::string* text) {
    text->clear();
    uint8_t byte = 0;
    while (Byte(&byte)) {
      if (byte == '\n') return true;
      if (text->size() < most) text->push_back(static_cast<char>(byte));
    }
    return false;
  }
  int error() const { return error_; }
  uint64_t position() const { return before_ + at_; }

 private:
  bool Refill() {
    if (fd_ < 0 || ended_) return false;
    before_ += block_.size();
    block_.resize(1 << 16);
    ssize_t got = 0;
    do {
      got = read(fd_, block_.data(), block_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) error_ = errno;
    ended_ = got <= 0;
    block_.resize(got <= 0 ? 0 : static_cast<size_t>(got));
    at_ = 0;
    return got > 0;
  }

  int fd_;
  std::string block_;
  size_t at_ = 0;
  uint64_t before_ = 0;
  bool ended_ = false;
  int error_ = 0;
};

}  // namespace diapason::flight_recorder
