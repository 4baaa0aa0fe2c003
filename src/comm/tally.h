#pragma once

#include <cstdint>
#include <string>

#include "base/tick_clock.h"
#include "diapason/comm.h"

namespace diapason::comm {

// The bytes of a call as nccl-tests counts them: the larger of one rank's input and output.
uint64_t CallBytes(const Call& call, int ranks);
// "all_reduce number 12, 4MiB f32"
std::string CallText(const Call& call, uint64_t number, int ranks);

// The statistics of a group. Counting a call costs a few additions; text is built on demand.
class CallCounts {
 public:
  CallCounts(int ranks, const TickClock& clock) : ranks_(ranks), clock_(&clock) {}

  void Count(Operation operation, DataType type, uint64_t number, uint64_t bytes, uint64_t ticks) {
    ++operations_;
    ticks_ += ticks;
    bytes_[static_cast<size_t>(operation)] += bytes;
    if (ticks > slowest_ticks_) {
      slowest_ticks_ = ticks;
      slowest_operation_ = operation;
      slowest_type_ = type;
      slowest_bytes_ = bytes;
      slowest_number_ = number;
    }
  }
  void CountSlow() { ++slow_calls_; }
  void CountUntimed(uint64_t bytes) {
    ++operations_;
    ++untimed_;
    untimed_bytes_ += bytes;
  }

  Statistics Get(double link_peak, bool simulated) const;
  void Reset() { *this = CallCounts(ranks_, *clock_); }

 private:
  int ranks_;
  const TickClock* clock_;
  uint64_t operations_ = 0;
  uint64_t ticks_ = 0;
  uint64_t bytes_[kOperationCount] = {};
  uint64_t slow_calls_ = 0;
  uint64_t untimed_ = 0;
  uint64_t untimed_bytes_ = 0;
  uint64_t slowest_ticks_ = 0;
  Operation slowest_operation_ = Operation::kBarrier;
  DataType slowest_type_ = DataType::kF32;
  uint64_t slowest_bytes_ = 0;
  uint64_t slowest_number_ = 0;
};

}  // namespace diapason::comm
