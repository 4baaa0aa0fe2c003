#pragma once

#include <cstdint>
#include <vector>

#include "flight_recorder/mismatch.h"
#include "flight_recorder/progress.h"

namespace diapason::flight_recorder {

// An operation that ranks wait in: a collective of a group, or one send with its receive. All
// ranks are indexes (JobProgress) except `no_dump`.
struct Node {
  uint32_t group = kNoIndex;
  int64_t sequence = -1;  // of a collective
  int64_t from = -1;      // ranks of a send and receive; -1: a collective
  int64_t to = -1;
  const Op* op = nullptr;         // of the first rank that waits
  std::vector<uint32_t> waiting;  // have it open, and nothing shows that they are past it
  std::vector<uint32_t> absent;   // have not entered it
  std::vector<uint32_t> queued;   // have entered it, behind another one that is open
  // Have entered it, behind a send or receive that is open, or the other way round. Whether one
  // waits for the other depends on the program.
  std::vector<uint32_t> later;
  std::vector<uint32_t> unknown;  // have a dump that does not show it
  std::vector<int64_t> no_dump;   // members of which nothing is known
};

// Who waits for whom, over all groups and all sends and receives: ranks wait in nodes, nodes wait
// for ranks.
class WaitGraph {
 public:
  explicit WaitGraph(const JobProgress& job);

  const std::vector<Node>& nodes() const { return nodes_; }
  struct Place {
    uint32_t node = kNoIndex;
    int64_t position = 0;  // in the order of the rank's calls
  };
  // The nodes that a rank waits in, in the order of its calls.
  const std::vector<Place>& WaitsIn(uint32_t rank) const { return waits_in_[rank]; }
  // The nodes that wait for a rank.
  const std::vector<uint32_t>& WaitFor(uint32_t rank) const { return wait_for_[rank]; }
  // Sends and receives that are matched, open on both sides, and differ.
  const std::vector<Mismatch>& pair_mismatches() const { return pair_mismatches_; }
  // Two operations that two ranks have entered in opposite orders, where that blocks them.
  struct Crossing {
    uint32_t ranks[2] = {kNoIndex, kNoIndex};
    uint32_t nodes[2] = {kNoIndex, kNoIndex};  // in the order of the first rank
  };
  const std::vector<Crossing>& crossings() const { return crossings_; }

  // The ranks that wait, directly or through others, for one of `ranks`, and these themselves.
  std::vector<char> Reach(const std::vector<uint32_t>& ranks) const;

 private:
  struct Channel {
    uint32_t group = kNoIndex;
    std::vector<const Op*> sends;
    std::vector<const Op*> receives;
  };
  void AddCollectives();
  void AddChannels();
  void AddPair(int64_t from, int64_t to, const Channel& channel, const Op* send, const Op* receive);
  void Wait(uint32_t rank, const Op& op, uint32_t node);
  void AddMissing(int64_t rank, Node* node) const;
  bool MayHaveEntered(const Dump& dump, const Node& node) const;
  void Complete(Node* node);
  void FindQueued();
  void FindCrossings();
  void Link();

  const JobProgress& job_;
  std::vector<Node> nodes_;
  std::vector<std::vector<Place>> waits_in_;
  std::vector<std::vector<uint32_t>> wait_for_;
  std::vector<Mismatch> pair_mismatches_;
  std::vector<Crossing> crossings_;
  size_t steps_ = 0;
};

}  // namespace diapason::flight_recorder
