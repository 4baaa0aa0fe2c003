#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/tick_clock.h"
#include "comm/backend.h"
#include "comm/chooser.h"
#include "comm/communicator.h"
#include "comm/staged_call.h"
#include "comm/tally.h"
#include "comm/watchdog.h"
#include "diapason/comm.h"
#include "rendezvous/store.h"

namespace diapason::comm {

// The parts of a group, filled in by Create() and Split().
struct GroupParts {
  RankInfo place;
  std::string name = "world";
  std::string backend;
  std::string description;
  std::vector<int> members;  // the ranks in the whole job, in the order of this group
  std::shared_ptr<rendezvous::RendezvousStore> store;  // null if the backend has its own bootstrap
  std::unique_ptr<Communicator> communicator;
  std::chrono::milliseconds timeout{600000};
  double slow_seconds = -1;  // negative: nothing is logged
  bool choose = false;
  std::shared_ptr<const policy::Policy> policy;  // null: none
  double link_peak = 0;
  std::function<void(const std::string&)> log;
};

// Numbers, times, bounds and explains the calls of a group, so that backends only move data. One
// thread at a time calls it.
class GroupState {
 public:
  explicit GroupState(GroupParts parts);
  ~GroupState();

  const GroupParts& parts() const { return parts_; }
  bool simulated() const { return simulated_; }

  Status Run(const Call& call);
  Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp reduce);
  std::unique_ptr<WorkState> Start(const Call& call, std::shared_ptr<GroupState> self);
  Result<std::shared_ptr<GroupState>> Split(int color, int key);

  Statistics statistics() const;
  void ResetStatistics() { tally_.Reset(); }
  // The group is ready: the caller's next call is number 1, and slow calls are logged from here on.
  void Open(double slow_seconds) {
    parts_.slow_seconds = slow_seconds;
    slow_ticks_ = slow_seconds < 0 ? UINT64_MAX : clock_.Ticks(slow_seconds);
    number_ = 0;
    tally_.Reset();
    FollowPolicy();
  }
  double Now() const;
  Status SimulateCompute(double seconds);

 private:
  friend class WorkState;

  // The most frequent call: an all_reduce in host memory with default options. It needs only these
  // checks; more would matter where the library takes a microsecond.
  bool IsPlain(const void* in, const void* out, size_t count, DataType type,
               ReduceOp reduce) const {
    const auto from = reinterpret_cast<uintptr_t>(in);
    const auto to = reinterpret_cast<uintptr_t>(out);
    const size_t bytes = count * 8;  // of the widest type
    return count - 1 < plain_limit_ && from != 0 && to != 0 && type <= DataType::kI64 &&
           reduce <= ReduceOp::kAvg && (from == to || from + bytes <= to || to + bytes <= from);
  }
  bool IsPlain(const Call& call) const {
    return call.operation == Operation::kAllReduce && call.tensors.empty() &&
           !call.wire.has_value() && call.config.IsDefault() && call.memory != Memory::kDevice &&
           IsPlain(call.in, call.out, call.count, call.type, call.reduce);
  }
  Status RunPlain(const void* in, void* out, size_t count, DataType type, ReduceOp reduce);
  // `checked`: Check has accepted it already.
  Status RunAsSaid(const Call& call, bool checked);
  // From here on the policy decides on calls that name no configuration.
  void FollowPolicy();
  // The call with the policy's configuration; unchanged if the policy has none or the library would
  // refuse it.
  Call Decided(const Call& call);
  // All checks that are possible before a rank starts; the result is the same on every rank.
  Status Check(const Call& call);
  bool NeedsPreparing(const Call& call) const;
  Result<std::unique_ptr<StagedCall>> Prepare(const Call& call, Deadline deadline);
  Status RunPrepared(const Call& call);
  // Runs a function that may block, under the watchdog.
  template <typename Function>
  Status Watched(const Call& call, uint64_t number, std::chrono::milliseconds limit,
                 const Function& function) {
    running_ = &call;
    running_number_ = number;
    watch_->Begin(++turn_, limit);
    Status status = function();
    if (!watch_->End()) status = Overrun(status, limit);
    return status;
  }
  Status Overrun(const Status& status, std::chrono::milliseconds limit);
  // A call has failed: breaks the group and finds the missing ranks, unless the backend only
  // refused the call.
  Status Fail(const Status& status, const Call& call, uint64_t number, double seconds);
  void Counted(const Call& call, uint64_t number, double seconds);
  void LogSlow(const Call& call, uint64_t number, double seconds);
  Deadline DeadlineAt(uint64_t ticks, std::chrono::milliseconds limit);
  double SecondsSince(uint64_t ticks, double virtual_start) const;
  void Expired();

  GroupParts parts_;
  bool simulated_ = false;
  Status broken_;
  std::unique_ptr<const PolicyChooser> chooser_;
  const TickClock& clock_;
  CallCounts tally_;
  gpu::Runtime* runtime_ = nullptr;
  uint64_t slow_ticks_ = 0;
  // 0: no call is plain, because the group is broken or its calls need more checks
  size_t plain_limit_ = 0;

  uint64_t number_ = 0;  // of the last call
  uint64_t turn_ = 0;    // of the last watched section
  int splits_ = 0;
  // The same instant on both clocks, so that computing a deadline needs no system clock.
  uint64_t base_ticks_ = 0;
  uint64_t rebase_ticks_ = 0;
  Deadline base_time_;
  // At most one line about slow calls per second.
  Deadline next_slow_line_;
  uint64_t slow_unsaid_ = 0;

  // For the watchdog: the running call; null with a call running: a plain all_reduce.
  const Call* running_ = nullptr;
  size_t running_count_ = 0;
  DataType running_type_ = DataType::kF32;
  uint64_t running_number_ = 0;
  std::atomic<bool> interrupted_{false};
  std::unique_ptr<CallWatch> watch_;
};

class WorkState {
 public:
  WorkState(std::shared_ptr<GroupState> group, const Call& call);
  // Waits, since the call uses buffers of the group and of the caller.
  ~WorkState();
  WorkState(const WorkState&) = delete;
  WorkState& operator=(const WorkState&) = delete;

  Status Wait(std::chrono::milliseconds limit);
  bool Done();

 private:
  friend class GroupState;
  Status Conclude(const Status& status);

  std::shared_ptr<GroupState> group_;
  Call call_;
  uint64_t number_ = 0;
  uint64_t start_ticks_ = 0;
  double virtual_start_ = 0;
  std::unique_ptr<StagedCall> prepared_;
  std::unique_ptr<PendingCall> pending_;  // null: concluded
  Status status_;
};

// One line on standard error.
void LogToStderr(const std::string& line);

}  // namespace diapason::comm
