#include "plugin/learning/epoch_proposer.h"

#include <algorithm>

namespace diapason::plugin {
namespace {

constexpr double kRateInterval = 1.0;
// Epochs beyond the present one that may be agreed on; see learn::ProposalLead. The other ranks
// read as many ahead.
constexpr uint32_t kMostAhead = 4;
constexpr double kEpochsPerTurn = 8;
constexpr uint64_t kFirstTurnCalls = 8;  // while the rate of calls is unknown
constexpr uint64_t kMostTurnCalls = 4096;

}  // namespace

bool EpochProposer::Begin(double now) {
  MeasureRate(now);
  const uint32_t newest = reporter_->newest().number;
  due_ = newest != seen_;
  due_since_ = seen_end_;
  seen_ = newest;
  seen_end_ = reporter_->newest().end();
  return newest > 0;
}

void EpochProposer::MeasureRate(double now) {
  if (now - rate_since_ <= kRateInterval) return;
  const uint64_t made = learning_->CallsMade(*context_);
  if (rate_since_ > 0) {
    calls_per_second_ = static_cast<double>(made - rate_calls_) / (now - rate_since_);
  }
  rate_calls_ = made;
  rate_since_ = now;
}

bool EpochProposer::IsBehind() const {
  const agree::EpochLog::Epoch& newest = reporter_->newest();
  if (proposed_ <= newest.number) return true;
  const uint64_t present_end = std::max(newest.end(), learning_->CallsMade(*context_));
  return proposed_end_ != 0 && proposed_ < newest.number + kMostAhead &&
         proposed_end_ < present_end + lead_.calls();
}

uint64_t EpochProposer::TurnCalls(double seconds) const {
  if (store_->cells()->Fullness() > kFullStore) return kRestCalls;
  const double calls = calls_per_second_ * seconds / kEpochsPerTurn;
  const auto wanted = calls > 0 ? static_cast<uint64_t>(calls) : kFirstTurnCalls;
  return std::clamp<uint64_t>(std::max(wanted, lead_.calls() / 2), 1, kMostTurnCalls);
}

bool EpochProposer::EndsWithin(double seconds) const {
  if (proposed_end_ == 0 || proposed_ >= reporter_->newest().number + kMostAhead) return false;
  const uint64_t made = learning_->CallsMade(*context_);
  const double calls = proposed_end_ > made ? static_cast<double>(proposed_end_ - made) : 0;
  return calls < calls_per_second_ * seconds;
}

uint32_t EpochProposer::next() const { return std::max(reporter_->newest().number, proposed_) + 1; }

uint64_t EpochProposer::next_start() const {
  const agree::EpochLog::Epoch& newest = reporter_->newest();
  return next() == newest.number + 1 ? newest.end() : proposed_end_;
}

EpochProposer::Outcome EpochProposer::Propose(const Schedule& schedule, double now) {
  const uint32_t epoch = next();
  const uint64_t start = next_start();
  const Result<agree::EpochLog::Standing> stands = store_->Noted(
      agree::EpochLog::Propose(store_->cells(), context_->prefix, epoch, schedule), now);
  // The call that asks will find out as well.
  if (!stands.ok()) return Outcome::kFailed;
  MeasureLead(stands.value().held);
  proposed_ = epoch;
  context_->known.Put(epoch, stands.value().text);
  if (stands.value().held || stands.value().schedule != schedule) {
    // The ranks are ahead: the next epoch begins at the call they report.
    proposed_end_ = 0;
    return Outcome::kOther;
  }
  proposed_end_ = start + schedule.Calls();
  return Outcome::kStands;
}

// The first proposal of a poll that has seen a new epoch was due when that epoch was entered.
void EpochProposer::MeasureLead(bool late) {
  const uint64_t made = learning_->CallsMade(*context_);
  if (due_) lead_.Proposed(made > due_since_ ? made - due_since_ : 0);
  due_ = false;
  if (late) lead_.Late();
}

}  // namespace diapason::plugin
