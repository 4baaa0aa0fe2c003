#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "logs/names.h"

namespace diapason::logs {

// The records of PyTorch's flight recorder for one rank in one process group.
struct FlightRank {
  int64_t rank = -1;
  uint32_t group = kNoName;
  // Sequence numbers of collectives; -1: none was seen.
  int64_t first = -1;
  int64_t last_enqueued = -1;
  int64_t last_started = -1;
  int64_t last_completed = -1;
  int64_t first_open = -1;     // the earliest one not completed
  std::string open_operation;  // "all_reduce [[1024]] Float, scheduled"
  std::string open_frame;      // "train.py:88 step": the innermost frame, if there are frames
  uint32_t file = 0;
  uint64_t point_to_point_open = 0;  // sends and receives not completed
};

struct FlightGroup {
  std::string description;     // "default_pg"
  std::vector<int64_t> ranks;  // its members; empty if the dump does not say
};

// A collective that ranks entered with different operations, sizes or types.
struct FlightDisagreement {
  uint32_t group = 0;
  int64_t sequence = 0;
  int64_t ranks[2] = {-1, -1};
  std::string calls[2];
};

struct FlightRecord {
  static constexpr size_t kMostRanks = 32768;
  static constexpr size_t kMostSignatures = 65536;
  Names groups{1024};
  std::map<uint32_t, FlightGroup> about;
  std::vector<FlightRank> ranks;
  std::vector<FlightDisagreement> disagreements;
  uint64_t entries = 0;
  uint64_t files = 0;
  std::string version;  // of the dump's format

  FlightRank* Find(uint32_t group, int64_t rank);

  // One rank's record of one collective, for comparison with other ranks.
  struct Signature {
    uint32_t group = kNoName;
    int64_t sequence = -1;
    int64_t rank = -1;
    uint32_t call = 0;
  };
  std::vector<Signature> signatures;
  Names calls{4096};

 private:
  std::unordered_map<uint64_t, uint32_t> index_;
};

// Parses a dump, `start` followed by the contents of `fd` (if not negative), of any size in
// constant memory. The dump does not contain its rank: `rank` comes from the file's name. Fails for
// invalid JSON, or if it is not a dump of the flight recorder.
Status ReadFlight(int fd, std::string_view start, uint32_t file, int64_t rank,
                  FlightRecord* flight);

// The rank in "nccl_trace_rank_3.json", "rank_3", "dump3": the last number in a file's name without
// its extension; -1 for none.
int64_t RankInName(std::string_view name);

}  // namespace diapason::logs
