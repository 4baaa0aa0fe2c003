#pragma once

#include <cstdint>

#include "learn/proposal_lead.h"
#include "plugin/learning/background_store.h"
#include "plugin/learning/handover.h"
#include "plugin/learning/reporter.h"

namespace diapason::plugin {

// Rank 0's proposals for the epochs of one context: which one is next, and whether those agreed on
// last until another can stand. It proposes what it is given. Runs on the learning thread only; the
// arguments of its constructor outlive it.
class EpochProposer {
 public:
  EpochProposer(const LearningHandover* learning, ContextHandover* context,
                const Reporter* reporter, BackgroundStore* store)
      : learning_(learning), context_(context), reporter_(reporter), store_(store) {}

  // At the beginning of a poll. False: no epoch may be proposed yet.
  bool Begin(double now);
  // Whether the epochs agreed on may end before a further proposal stands.
  bool IsBehind() const;
  // Whether a further epoch may be written ahead: the epochs agreed on end within `seconds`, at the
  // present rate of calls, and are not too many.
  bool EndsWithin(double seconds) const;
  // Calls per second, over the last second or so; 0: not known yet.
  double rate() const { return calls_per_second_; }
  // The calls that have to be agreed on beyond the present epoch.
  uint64_t lead() const { return lead_.calls(); }
  // Calls in an epoch while turns of so many seconds are followed: short, so that every context
  // changes over soon, and long enough for four epochs to last until a proposal stands. Longer
  // when the store is nearly full.
  uint64_t TurnCalls(double seconds) const;

  // The epoch to propose next, and its first call.
  uint32_t next() const;
  uint64_t next_start() const;
  // Proposes next(). `kOther`: another schedule stands, and the first call of the epoch after it is
  // not known until the ranks have entered it.
  enum class Outcome : uint8_t { kStands, kOther, kFailed };
  Outcome Propose(const Schedule& schedule, double now);

  // While a context has nothing to change: the calls of an epoch.
  static constexpr uint64_t kRestCalls = uint64_t{1} << 16;
  static constexpr double kFullStore = 0.75;

 private:
  void MeasureRate(double now);
  void MeasureLead(bool late);

  const LearningHandover* const learning_;
  ContextHandover* const context_;
  const Reporter* const reporter_;
  BackgroundStore* const store_;
  uint32_t proposed_ = 1;      // the last proposed epoch
  uint64_t proposed_end_ = 0;  // the first call after it; 0: unknown until it is entered
  learn::ProposalLead lead_;
  bool due_ = false;         // an epoch was entered since the last poll
  uint64_t due_since_ = 0;   // its first call, which made the next proposal due
  uint32_t seen_ = 0;        // the newest epoch at the last poll
  uint64_t seen_end_ = 0;    // the first call after it
  uint64_t rate_calls_ = 0;  // calls made at rate_since_
  double rate_since_ = 0;
  double calls_per_second_ = 0;
};

}  // namespace diapason::plugin
