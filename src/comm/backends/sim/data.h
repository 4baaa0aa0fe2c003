#pragma once

#include <vector>

#include "diapason/comm.h"

namespace diapason::comm::sim {

// One rank's buffers in a collective.
struct RankBuffers {
  const void* in = nullptr;
  void* out = nullptr;
};

// Moves the data of a collective for all ranks at once: reads every `in`, writes every `out`. Sums
// are added in rank order. May throw std::bad_alloc.
void MoveData(const Call& call, const std::vector<RankBuffers>& ranks);

}  // namespace diapason::comm::sim
