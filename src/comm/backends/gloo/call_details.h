#pragma once

#include <algorithm>
#include <chrono>

#include "comm/communicator.h"

// What the two sources of GlooCommunicator share.
namespace diapason::comm::gloo_details {

// The domain's numbers of Gloo algorithms.
inline constexpr int kOptionsRing = 0;
inline constexpr int kOptionsBcube = 1;
inline constexpr int kPlainRing = 2;
inline constexpr int kHalvingDoubling = 4;
inline constexpr int kBcube = 5;
// Purposes of connections beside the all_reduce algorithms.
inline constexpr int kOthers = -1;
inline constexpr int kReduceScatters = -2;
// Slots of sends and receives, apart from those of Gloo's collectives, whose first byte is small.
inline constexpr uint64_t kPairSlot = uint64_t{0x40} << 56U;
// If every rank first sends a whole part and then receives, blocking sockets deadlock once the part
// is larger than the kernel's buffers.
inline constexpr size_t kBlockingLimit = size_t{64} << 10U;

// The time that is left, at least a millisecond: Gloo takes 0 for no limit.
inline std::chrono::milliseconds Left(Deadline deadline) {
  using std::chrono::milliseconds;
  return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(
                                       deadline - std::chrono::steady_clock::now()));
}

inline uint64_t PairSlot(const Call& call) {
  return kPairSlot | static_cast<uint64_t>(call.count * SizeOf(call.type));
}

}  // namespace diapason::comm::gloo_details
