#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diapason::comm {

// What travels between the ranks and rank 0's store: frames of a length (four bytes, little
// endian), a kind (one byte) and a body of numbers and strings. Both ends believe nothing.
enum class FrameKind : uint8_t {
  // To rank 0.
  kHello = 1,
  kSet,
  kGet,
  kCollect,
  kGiveUp,
  kGoodbye,
  // From rank 0: answers,
  kFine,
  kNotYet,
  kLater,    // an earlier group is still there: try again
  kRefused,  // the text says why
  // and what it says by itself.
  kLostNotice,
  kGaveUpNotice,
  kGoodbyeNotice,
};
inline constexpr uint32_t kFrameLimit = 64U << 20U;
// The first thing either side says.
inline constexpr std::string_view kFrameMagic = "diapason store 1";

class FrameWriter {
 public:
  explicit FrameWriter(FrameKind kind);
  FrameWriter& Number(uint64_t number);
  FrameWriter& Text(std::string_view text);
  FrameWriter& Ranks(const std::vector<int>& ranks);
  // The whole frame, ready to be sent.
  std::string Take();

 private:
  std::string bytes_;
};

// Reads a body; every reader returns a neutral value once something is missing, and ok() is false.
class FrameReader {
 public:
  explicit FrameReader(std::string_view body) : rest_(body) {}
  uint64_t Number();
  std::string_view Text();
  // Ranks below `limit`, at most `limit` of them.
  std::vector<int> Ranks(uint64_t limit);
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// Takes the first whole frame off `buffer`. False: there is none yet. `*damaged` is set when there
// can never be one.
bool TakeFrame(std::string* buffer, FrameKind* kind, std::string* body, bool* damaged);

}  // namespace diapason::comm
