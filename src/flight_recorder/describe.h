#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flight_recorder/progress.h"
#include "flight_recorder/waits.h"

namespace diapason::flight_recorder {

// Sentences about the parts of a job.
class Describe {
 public:
  Describe(const JobProgress& job, const WaitGraph& graph) : job_(job), graph_(graph) {}

  std::vector<int64_t> Ranks(const std::vector<uint32_t>& indexes) const;
  std::string Words(const std::vector<uint32_t>& indexes) const;  // "ranks 9 and 14"
  std::string Group(uint32_t group) const;                        // "group 4 (pp)"
  // "collective 12 of group 0 (default_pg), all_reduce [64] Float",
  // "the send of rank 3 to rank 1 in group 4 (pp), [64] Float".
  std::string Operation(const Node& node) const;
  // ", called from train.py:88 step"; "" without frames.
  std::string From(const Entry& entry) const;
  // " since 2025-09-22 22:47:17 UTC"; "" if unknown.
  static std::string Since(const Entry& entry);
  // "ranks 0 and 1 wait for rank 2 in collective 12 of ...".
  std::string Wait(const Node& node, const std::vector<uint32_t>& waiting,
                   const std::vector<uint32_t>& awaited) const;
  // "FILE: rank 3 last called ...".
  std::string LastCall(uint32_t rank) const;
  // The waits that lead to these ranks, the nearest first, at most `most` and a count of the rest.
  std::vector<std::string> Chains(const std::vector<uint32_t>& roots, size_t most) const;

 private:
  const JobProgress& job_;
  const WaitGraph& graph_;
};

}  // namespace diapason::flight_recorder
