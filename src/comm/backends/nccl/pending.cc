#include "comm/backends/nccl/pending.h"

#include <algorithm>
#include <thread>

namespace diapason::comm::nccl {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

// Waiting spins for a short operation, yields for a longer one, and sleeps for one that takes
// milliseconds: for a sixteenth of the time so far, so that its end is noticed at most that late.
constexpr microseconds kSpin{50};
constexpr microseconds kYield{1000};
constexpr microseconds kLongestSleep{1000};
// For messages that are begun because the caller polls one.
constexpr std::chrono::seconds kBeginLimit{60};

}  // namespace

NcclPending::NcclPending(std::shared_ptr<CommShared> shared, CallInFlight* flight, Status verdict)
    : shared_(std::move(shared)),
      flight_(flight),
      verdict_(std::move(verdict)),
      captured_(flight->captured),
      done_(flight->captured) {}

NcclPending::~NcclPending() {
  if (flight_ != nullptr) shared_->workspace->LetGo(flight_);
}

void NcclPending::Finish(Status result) {
  done_ = true;
  result_ = std::move(result);
}

bool NcclPending::Ask() {
  if (done_) return true;
  // An aborted communicator also ends the operation: its result is then invalid.
  if (Status status = shared_->connection->broken(); !status.ok()) {
    Finish(status);
    return true;
  }
  gpu::Runtime* runtime = shared_->workspace->runtime();
  const Result<bool> ended = runtime->EventDone(flight_->end);
  if (!ended.ok()) {
    Finish(shared_->Break(ended.status(), false));
    return true;
  }
  if (!ended.value()) return false;
  if (Status status = shared_->connection->broken(); !status.ok()) {
    Finish(status);
    return true;
  }
  const Result<double> seconds = runtime->Elapsed(flight_->begin, flight_->end);
  if (seconds.ok()) seconds_ = seconds.value();
  Finish(verdict_);
  return true;
}

bool NcclPending::Done() {
  if (done_) return true;
  const gpu::Bound bound(shared_->workspace->runtime(), shared_->workspace->device());
  if (const Status begun = shared_->Flush(steady_clock::now() + kBeginLimit); !begun.ok()) {
    Finish(begun);
    return true;
  }
  if (Ask()) return true;
  // A caller that only polls must learn of a lost rank as well.
  const Status status = shared_->connection->Look();
  if (status.ok()) return false;
  Finish(shared_->Break(status, false));
  return true;
}

Status NcclPending::Wait(Deadline deadline) {
  if (done_) return result_;
  const gpu::Bound bound(shared_->workspace->runtime(), shared_->workspace->device());
  if (const Status begun = shared_->Flush(deadline); !begun.ok()) {
    Finish(begun);
    return result_;
  }
  const auto begin = steady_clock::now();
  while (!Ask()) {
    const auto now = steady_clock::now();
    const auto waited = now - begin;
    if (now >= deadline) {
      Finish(shared_->Break(TimedOut("the operation has not ended")));
      break;
    }
    if (waited < kSpin) continue;
    if (const Status status = shared_->connection->Look(); !status.ok()) {
      Finish(shared_->Break(status));
      break;
    }
    if (waited < kYield) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(
          std::min(kLongestSleep, duration_cast<microseconds>(waited) / 16));
    }
  }
  return result_;
}

}  // namespace diapason::comm::nccl
