#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diapason::rendezvous {

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
  kChallenge,  // its first frame: see handshake.h
};

// How long the body of a frame may be. Known before it is read, so that no frame makes its reader
// keep more.

// Until both ends have proven themselves, in both directions. A hello has some 200 bytes.
inline constexpr uint32_t kStrangerLimit = 4096;
// From a rank. The largest there is tells the addresses of Gloo's ends, one for each rank (some 160
// bytes), to the ranks it names (8 bytes each); the first part is for texts.
constexpr uint32_t RequestLimit(int ranks) {
  return (1U << 20U) + 512U * static_cast<uint32_t>(ranks);
}
// From rank 0: what all ranks have said, at once.
inline constexpr uint32_t kAnswerLimit = 64U << 20U;

// The first thing either side says. Its last character is the version of what follows.
inline constexpr std::string_view kFrameMagic = "diapason store 2";

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

// Bytes as they come in, until they are whole frames. Every byte is moved a bounded number of times
// on its way, however small the pieces and large the frames are.
class FrameBuffer {
 public:
  // Where the next bytes are to be appended; nothing else may be done to it. Valid until the next
  // call.
  std::string* Tail();
  // What has come and was not taken.
  std::string_view rest() const { return std::string_view(bytes_).substr(taken_); }
  void Skip(size_t count) { taken_ += count; }
  void Clear();
  // Takes the first whole frame. False: there is none yet. `*damaged` is set when there can never
  // be one: it is longer than `limit`, or of no known kind.
  bool Take(uint32_t limit, FrameKind* kind, std::string* body, bool* damaged);

 private:
  std::string bytes_;
  size_t taken_ = 0;
};

}  // namespace diapason::rendezvous
