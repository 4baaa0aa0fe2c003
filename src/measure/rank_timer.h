#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "diapason/comm.h"
#include "measure/buffers.h"
#include "measure/iteration.h"
#include "measure/measurer.h"

namespace diapason::measure {

// One rank's place at the measuring. Every rank of the group makes the same calls with the same
// arguments, and all get the same answer.
//
// A block of calls is timed on every rank from a common start to the rank's own end, and the
// slowest rank's time counts: a broadcast's root is done long before its data have arrived.
class RankTimer {
 public:
  // `group` stays the caller's and must live longer.
  static Result<std::unique_ptr<RankTimer>> Create(Group* group);

  // After the outcomes kHang and kCrash the group is broken, and so is every later reading.
  Measurement Measure(const Trial& trial);
  // Two ranks send each other `bytes` at the same time, `iterations` times; the others look on.
  Measurement MeasurePair(int first, int second, uint64_t bytes, int iterations);

  Group* group() const { return group_; }
  // Of all ranks, in their order.
  const std::vector<std::string>& hosts() const { return hosts_; }
  // As the library counts them, and asks a tuner about: NCCL and RCCL go by NCCL_HOSTID where it is
  // set, which is how ranks share a GPU.
  int nodes() const { return nodes_; }

 private:
  RankTimer(Group* group, std::unique_ptr<MeasureBuffers> buffers)
      : group_(group), buffers_(std::move(buffers)) {}

  Status FindHosts();
  // One short text of every rank.
  Result<std::vector<std::string>> Gather(const std::string& mine);
  // The first so many ranks as a group of their own; null for the ranks beyond.
  Result<Group*> FirstRanks(int ranks);
  Status RunBlock(Group* group, const Call& call, const Trial& trial, int iterations);
  Result<int64_t> Check(Group* group, const Call& call, const Trial& trial);
  // Every rank says whether it is ready; all get the same answer.
  Status Ready(const Status& mine);
  // A trial with a workload: steps instead of calls.
  Measurement MeasureSteps(const Trial& trial);
  // From every rank's own figures to what all return.
  Measurement Combine(const Status& status, double seconds, int64_t wrong, bool took_part,
                      const Trial& trial);

  Group* group_;
  std::unique_ptr<MeasureBuffers> buffers_;
  std::vector<std::string> hosts_;
  int nodes_ = 1;
  std::map<int, std::unique_ptr<Group>> parts_;
  // The iteration that was measured last, without its configurations, and what it needs.
  IterationSpec prepared_spec_;
  std::unique_ptr<PreparedIteration> prepared_;
};

}  // namespace diapason::measure
