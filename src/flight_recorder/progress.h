#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flight_recorder/record.h"

namespace diapason::flight_recorder {

// Whether no rank can complete this operation before all members have entered it: all_reduce is
// such, broadcast is not.
bool WaitsForAll(std::string_view operation);

// One operation of one rank, with the state of the batch ("coalesced") that it belongs to: the
// recorder does not update the entries of a batch, only the entry that ends it.
struct Op {
  const Entry* entry = nullptr;
  int64_t position = 0;  // in the order of calls; the same for all operations of a batch
  int64_t from = -1;     // ranks of a send or receive
  int64_t to = -1;
  bool open = false;
  bool send = false;
};

// Where one rank is in the collectives of one group.
struct Progress {
  int64_t entered = -1;     // the last sequence number that it is known to have entered
  int64_t completed = -1;   // the last one that it is known to have completed
  int64_t first_open = -1;  // the first one that is open
  const Op* open = nullptr;
  const Op* last_done = nullptr;  // the last completed one that the dump has an entry of
};

struct RankProgress {
  const Dump* dump = nullptr;
  std::vector<Op> ops;  // all operations; sends and receives only with known ranks
  std::unordered_map<uint32_t, Progress> groups;
  // Operations that other members of the group completed, and that are still open here.
  std::vector<const Op*> stale;
  int64_t done = -1;   // position of the last of them: what is open up to there waits for no rank
  bool older = false;  // others completed what it had not entered: the dump was written earlier

  // Whether the dump shows that the rank has not entered what it has no entry of.
  bool Certain() const { return !older && !dump->truncated; }
  bool Live(const Op& op) const { return op.open && op.position > done; }
};

// The state of all ranks of a job, by the order of FlightRecord::dumps, which must not change.
class JobProgress {
 public:
  explicit JobProgress(const FlightRecord& record);

  const FlightRecord& record() const { return record_; }
  const std::vector<RankProgress>& ranks() const { return ranks_; }
  const RankProgress& rank(size_t index) const { return ranks_[index]; }
  // The members of a group: as listed, or else the ranks that have entries of it.
  const std::vector<int64_t>& Members(uint32_t group) const { return members_[group]; }
  // The index of a rank; kNoIndex if it has no dump.
  uint32_t Index(int64_t rank) const;
  // Null if the rank's dump shows nothing of the group.
  const Progress* Of(uint32_t index, uint32_t group) const;
  // Ranks that groups name and that have no dump.
  std::vector<int64_t> Missing() const;
  bool HasP2p(uint32_t group) const { return has_p2p_[group] != 0; }

 private:
  void ReadOps(RankProgress* rank);
  void ResolvePeers(const RankProgress& rank, Op* op) const;
  void ReadProgress(RankProgress* rank);
  void FindMembers();
  void FindStale();
  bool CompletedByAll(uint32_t index, uint32_t group, int64_t sequence) const;

  const FlightRecord& record_;
  std::vector<RankProgress> ranks_;
  std::vector<std::vector<int64_t>> members_;
  std::vector<char> has_p2p_;
  std::unordered_map<int64_t, uint32_t> index_;
};

}  // namespace diapason::flight_recorder
