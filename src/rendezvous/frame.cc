#include "rendezvous/frame.h"

namespace diapason::rendezvous {
namespace {

constexpr size_t kKept = 65536;

void PutLength(std::string* bytes, size_t at, uint32_t length) {
  for (size_t i = 0; i < 4; ++i) {
    (*bytes)[at + i] = static_cast<char>((length >> (8U * static_cast<unsigned>(i))) & 0xffU);
  }
}

uint64_t GetBytes(std::string_view bytes, size_t count) {
  uint64_t number = 0;
  for (size_t i = count; i-- > 0;) number = (number << 8U) | static_cast<unsigned char>(bytes[i]);
  return number;
}

}  // namespace

FrameWriter::FrameWriter(FrameKind kind) : bytes_(kFrameHeader, '\0') {
  bytes_[4] = static_cast<char>(kind);
}

FrameWriter& FrameWriter::Number(uint64_t number) {
  for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>((number >> (8 * i)) & 0xffU));
  return *this;
}

FrameWriter& FrameWriter::Text(std::string_view text) {
  Number(text.size());
  bytes_.append(text);
  return *this;
}

FrameWriter& FrameWriter::Ranks(const std::vector<int>& ranks) {
  Number(ranks.size());
  for (const int rank : ranks) Number(static_cast<uint64_t>(rank));
  return *this;
}

std::string FrameWriter::Take() {
  PutLength(&bytes_, 0, static_cast<uint32_t>(bytes_.size() - kFrameHeader));
  return std::move(bytes_);
}

uint64_t FrameReader::Number() {
  if (!ok_ || rest_.size() < 8) {
    ok_ = false;
    return 0;
  }
  const uint64_t number = GetBytes(rest_, 8);
  rest_.remove_prefix(8);
  return number;
}

std::string_view FrameReader::Text() {
  const uint64_t length = Number();
  if (!ok_ || rest_.size() < length) {
    ok_ = false;
    return {};
  }
  const std::string_view text = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return text;
}

std::vector<int> FrameReader::Ranks(uint64_t limit) {
  const uint64_t count = Number();
  if (!ok_ || count > limit) {
    ok_ = false;
    return {};
  }
  std::vector<int> ranks;
  for (uint64_t i = 0; i < count && ok_; ++i) {
    const uint64_t rank = Number();
    if (rank >= limit) ok_ = false;
    ranks.push_back(static_cast<int>(rank));
  }
  return ok_ ? ranks : std::vector<int>{};
}

std::string* FrameBuffer::Tail() {
  if (taken_ == bytes_.size()) {
    Clear();
  } else if (taken_ > bytes_.size() / 2) {
    bytes_.erase(0, taken_);
    taken_ = 0;
  }
  return &bytes_;
}

void FrameBuffer::Clear() {
  // Memory of one large frame is not kept for the small ones after it.
  if (bytes_.capacity() > kKept) std::string().swap(bytes_);
  bytes_.clear();
  taken_ = 0;
}

bool FrameBuffer::Take(uint32_t limit, FrameKind* kind, std::string* body, bool* damaged) {
  *damaged = false;
  const std::string_view here = rest();
  if (here.size() < kFrameHeader) return false;
  const auto length = static_cast<uint32_t>(GetBytes(here, 4));
  const auto number = static_cast<uint8_t>(here[4]);
  if (length > limit || number < static_cast<uint8_t>(FrameKind::kHello) ||
      number > static_cast<uint8_t>(FrameKind::kCells)) {
    *damaged = true;
    return false;
  }
  if (here.size() - kFrameHeader < length) return false;
  *kind = static_cast<FrameKind>(number);
  body->assign(here, kFrameHeader, length);
  Skip(kFrameHeader + length);
  return true;
}

}  // namespace diapason::rendezvous
