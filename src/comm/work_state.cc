#include <algorithm>

#include "comm/group_state.h"

namespace diapason::comm {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

WorkState::WorkState(std::shared_ptr<GroupState> group, const Call& call)
    : group_(std::move(group)), call_(call) {}

WorkState::~WorkState() {
  const Status status = Wait(milliseconds(0));
  static_cast<void>(status);  // a failure has broken the group: the next call reports it
}

std::unique_ptr<WorkState> GroupState::Start(const Call& asked, std::shared_ptr<GroupState> self) {
  const bool asks = chooser_ != nullptr && asked.config.IsDefault();
  auto work = std::make_unique<WorkState>(std::move(self), asks ? Decided(asked) : asked);
  const Call& call = work->call_;
  work->status_ = Check(call);
  if (!work->status_.ok()) return work;
  const uint64_t number = ++number_;
  work->number_ = number;
  work->virtual_start_ = simulated_ ? parts_.communicator->Now() : 0;
  work->start_ticks_ = clock_.Now();
  const Deadline deadline = DeadlineAt(work->start_ticks_, parts_.timeout);
  const Call* actual = &work->call_;
  if (NeedsPreparing(call)) {
    Result<std::unique_ptr<StagedCall>> prepared = Prepare(call, deadline);
    if (!prepared.ok()) {
      work->status_ = Fail(prepared.status(), call, number, 0);
      return work;
    }
    work->prepared_ = std::move(prepared).value();
    actual = &work->prepared_->call();
  }
  if (actual->count == 0 && actual->tensors.empty() && call.operation != Operation::kBarrier) {
    Counted(call, number, 0);
    return work;
  }
  work->status_ = Watched(work->call_, number, parts_.timeout, [&]() -> Status {
    ASSIGN_OR_RETURN(work->pending_, parts_.communicator->Start(*actual, deadline));
    return {};
  });
  if (!work->status_.ok()) {
    work->pending_.reset();
    work->status_ =
        Fail(work->status_, call, number, SecondsSince(work->start_ticks_, work->virtual_start_));
  } else if (work->pending_->Captured()) {
    tally_.CountUntimed(CallBytes(call, parts_.place.size));
    work->pending_.reset();
  }
  return work;
}

Status WorkState::Conclude(const Status& status) {
  const double measured = pending_->Seconds();
  pending_.reset();
  if (group_->broken_.ok() || status.ok()) {
    status_ = status;
    if (status_.ok() && prepared_ != nullptr) status_ = prepared_->Finish();
    if (!status_.ok()) {
      status_ =
          group_->Fail(status_, call_, number_, group_->SecondsSince(start_ticks_, virtual_start_));
    } else if (measured >= 0) {
      group_->Counted(call_, number_, measured);
    } else {
      group_->tally_.CountUntimed(CallBytes(call_, group_->parts_.place.size));
    }
  } else {
    status_ = group_->broken_;
  }
  prepared_.reset();
  return status_;
}

Status WorkState::Wait(milliseconds limit) {
  if (pending_ == nullptr) return status_;
  if (limit.count() <= 0) limit = group_->parts_.timeout;
  return Conclude(group_->Watched(call_, number_, limit,
                                  [&] { return pending_->Wait(steady_clock::now() + limit); }));
}

bool WorkState::Done() { return pending_ == nullptr || pending_->Done(); }

}  // namespace diapason::comm
