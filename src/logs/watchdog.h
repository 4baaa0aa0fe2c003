#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "logs/place.h"

namespace diapason::logs {

// The messages of PyTorch's watchdog about one rank of one process group.
struct WatchdogRank {
  std::string group;  // as printed: "0(default_pg)", "1"; "" in older versions
  int64_t rank = -1;
  int64_t sequence = -1;  // the earliest collective that timed out; -1: none did
  std::string operation;  // "ALLREDUCE"
  int64_t elements = -1;
  int64_t milliseconds = -1;  // it had run
  SourceLine place;
  // From the summary line, if there is one; -2: not given.
  int64_t last_enqueued = -2;
  int64_t last_completed = -2;
  SourceLine status;
};

struct WatchdogReport {
  std::vector<WatchdogRank> ranks;
  bool Line(const Spot& spot, std::string_view line);  // whether it was one of these
  static constexpr size_t kMost = 4096;

 private:
  WatchdogRank* Find(std::string_view group, int64_t rank);
  std::unordered_map<int64_t, std::vector<uint32_t>> by_rank_;
};

}  // namespace diapason::logs
