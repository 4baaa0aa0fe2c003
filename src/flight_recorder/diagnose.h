#pragma once

#include <string>
#include <vector>

#include "domain/finding.h"
#include "flight_recorder/record.h"

namespace diapason::flight_recorder {

// What the dumps of a job show, the cause first: mismatches (flight.mismatch), ranks that are
// behind (flight.behind), GPUs that stopped (flight.gpu-stuck), circles (flight.deadlock),
// operations that all members have entered (flight.network), ranks without a dump
// (flight.missing-dump), dumps of different times (flight.older-dump), files that are not used
// or not known (flight.twice, flight.version). Empty for a job that waits for nothing.
std::vector<Finding> Diagnose(const FlightRecord& record);

// One line of an overview: ranks of a group that are at the same place.
struct GroupLine {
  uint32_t group = 0;
  std::vector<int64_t> ranks;
  int64_t entered = -1;
  int64_t started = -1;
  int64_t completed = -1;
  int64_t first_open = -1;
  std::string open;       // "all_reduce [64] Float, started"
  std::string frame;      // where the program called it
  uint64_t open_p2p = 0;  // sends and receives that are open on each of them
};
// Groups in which all ranks are at the same place and nothing is open are left out if others
// remain and `all` is false.
std::vector<GroupLine> Overview(const FlightRecord& record, bool all);

}  // namespace diapason::flight_recorder
