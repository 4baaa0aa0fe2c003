#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "domain/collectives.h"

namespace diapason::tune {

// A call of a recorded job.
struct TimedCall {
  Operation operation = Operation::kAllReduce;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;

  bool SameKind(const TimedCall& other) const {
    return operation == other.operation && bytes == other.bytes;
  }
};

// The step that a job repeats.
struct RecordedStep {
  std::vector<TimedCall> calls;  // of one step, in order
  size_t outside = 0;            // recorded calls that are part of no step: at start-up, at the end
};

// Finds the step in the calls of one rank, in the order in which they were made: the shortest
// sequence of calls whose repetitions explain them best. It begins after the longest pause. Calls
// of one kind only have no order: their steps are told by pauses that are equally many calls apart.
// None: nothing repeats often enough.
std::optional<RecordedStep> FindStep(const std::vector<TimedCall>& calls);

}  // namespace diapason::tune
