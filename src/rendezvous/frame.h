#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diapason::rendezvous {

// The protocol between the ranks and a store: frames of a length (four bytes, little endian), a
// kind (one byte) and a body of numbers and strings. Both ends validate everything.
enum class FrameKind : uint8_t {
  // To rank 0.
  kHello = 1,
  kSet,
  kGet,
  kCollect,
  kGiveUp,
  kGoodbye,
  // From rank 0: replies,
  kFine,
  kNotYet,
  kLater,    // an earlier group still exists: try again
  kRefused,  // the text says why
  // and notices.
  kLostNotice,
  kGaveUpNotice,
  kGoodbyeNotice,
  kChallenge,  // its first frame: see handshake.h
  // To a cell store, and its reply: see agree/cell_protocol.h.
  kOpenJob,
  kPropose,
  kRead,
  kForget,
  kDone,
  kKeepAlive,
  kLeave,
  kCells,
};

// Limits on the body of a frame. They are checked before the body is read, so that no frame makes
// its reader allocate more.

// In both directions, until both ends have authenticated. A hello has about 200 bytes.
inline constexpr uint32_t kUnauthenticatedLimit = 4096;
// From a rank. The largest request sends the addresses of Gloo's ends, one for each rank (about 160
// bytes), to the ranks it names (8 bytes each); the constant is for texts.
constexpr uint32_t RequestLimit(int ranks) {
  return (1U << 20U) + 512U * static_cast<uint32_t>(ranks);
}
// From rank 0: the values of all ranks in one frame.
inline constexpr uint32_t kAnswerLimit = 64U << 20U;

// The first bytes from either side. The last character is the protocol version.
inline constexpr std::string_view kFrameMagic = "diapason store 2";

inline constexpr size_t kFrameHeader = 5;  // length and kind

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

// The body of a whole frame.
inline std::string BodyOf(std::string frame) { return frame.erase(0, kFrameHeader); }

// Reads a body; once something is missing, every function returns a neutral value, and ok() is
// false.
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

// Assembles received bytes into frames. Every byte is moved a bounded number of times, however
// small the pieces and large the frames are.
class FrameBuffer {
 public:
  // The buffer to append the next bytes to; nothing else may be done to it. Valid until the next
  // call.
  std::string* Tail();
  // Received bytes that were not taken yet.
  std::string_view rest() const { return std::string_view(bytes_).substr(taken_); }
  void Skip(size_t count) { taken_ += count; }
  void Clear();
  // Takes the first whole frame. False: there is none yet. `*damaged` is set if the frame is longer
  // than `limit` or of an unknown kind.
  bool Take(uint32_t limit, FrameKind* kind, std::string* body, bool* damaged);

 private:
  std::string bytes_;
  size_t taken_ = 0;
};

}  // namespace diapason::rendezvous
