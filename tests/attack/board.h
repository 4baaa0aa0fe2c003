#pragma once

#include <atomic>
#include <cstdint>

// What the ranks of one attacked job did, in a file that all of them map. board.py reads it: the
// layout is the same in both. Every word is written by its rank alone, but for `gone` and the
// header, which are the conductor's.
namespace attack {

inline constexpr uint32_t kMagic = 0x64617474;
inline constexpr uint32_t kMostRanks = 16;
inline constexpr uint32_t kMostCalls = 60000;

enum State : uint32_t {
  kRunning = 0,
  kFinished = 1,  // made all its calls
  kFailed = 2,    // the plugin returned an error
  kStranded = 3,  // another rank failed or is gone: a real call would wait for it for ever
};

struct Header {
  uint32_t magic;
  uint32_t ranks;
  std::atomic<uint32_t> stop_at;  // nobody makes a call from this one on
  std::atomic<uint32_t> hold;     // ranks that have made their calls wait before they end
  uint32_t reserved[12];
};

struct Rank {
  std::atomic<uint32_t> done;     // calls made
  std::atomic<uint32_t> created;  // communicators
  std::atomic<uint32_t> state;
  std::atomic<int32_t> error;
  std::atomic<uint32_t> error_at;       // the call
  std::atomic<uint32_t> error_in_init;  // 1: in the creation of a communicator
  std::atomic<uint32_t> gone;           // its process has ended
  std::atomic<uint32_t> warnings;
  std::atomic<uint64_t> init_ns;  // the longest of each kind
  std::atomic<uint64_t> question_ns;
  std::atomic<uint64_t> finalize_ns;
  std::atomic<uint64_t> allocations;  // counted where they were to fail
  uint64_t reserved[8];
  std::atomic<uint32_t> ran[kMostCalls];  // 0: nothing
};

struct Board {
  Header header;
  Rank rank[kMostRanks];
};

static_assert(sizeof(Header) == 64 && sizeof(Rank) == 128 + 4 * kMostCalls);

}  // namespace attack
