#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "flight_recorder/mismatch.h"
#include "flight_recorder/progress.h"
#include "flight_recorder/waits.h"

namespace diapason::flight_recorder {

// Ranks that wait for each other in a circle: each waits in its node for the next.
struct Deadlock {
  std::vector<std::pair<uint32_t, uint32_t>> steps;  // rank and node
};

// What holds up the ranks of a job, each cause with what it explains. Ranks are indexes of
// JobProgress, operations are nodes of WaitGraph.
struct Causes {
  std::vector<Mismatch> mismatches;
  std::vector<uint32_t> behind;  // wait for no rank, and others wait for them
  std::vector<char> behind_reach;
  std::vector<uint32_t> stuck;  // have not completed what others completed
  std::vector<Deadlock> deadlocks;
  std::vector<uint32_t> stalled;  // operations that all members have entered, and none completes
  std::vector<int64_t> missing;   // ranks without a dump that others wait for
  std::vector<uint32_t> missing_nodes;  // in which they wait for them, and for no known rank
  std::vector<int64_t> without_dump;    // all ranks without a dump
  std::vector<uint32_t> older;          // ranks whose dumps were written before those of others
  std::vector<uint32_t> cut;            // ranks whose dumps break off
};

Causes FindCauses(const JobProgress& job, const WaitGraph& graph);

}  // namespace diapason::flight_recorder
