#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agree/token.h"
#include "learn/learner.h"
#include "learn/rewards.h"
#include "plugin/learning/context.h"
#include "plugin/learning/reporter.h"

namespace diapason::plugin {

class Learning;

// Rank 0's exploration of one context: which configurations can be tried, which is tried next, and
// their results. Runs on the learning thread only. Correctness does not depend on it: all ranks run
// what the cells say, whatever this class proposes or fails to propose.
class ContextExplorer {
 public:
  ContextExplorer(Learning* learning, LearningContext* context);

  // Called last: releases the exploration token for other contexts.
  void Leave(Deadline deadline) { (void)token_.Release(deadline); }

  void Poll(double now, std::vector<Reporter::Finished> finished);
  // A line of the reward file for this context.
  void Line(double seconds);

  bool exploring() const;
  bool wants_pattern() const;
  // The results for the learned policy. Empty: nothing was compared.
  std::vector<learn::ArmSummary> Summary() const;
  Config best() const;
  bool decided() const { return learner_ != nullptr && learner_->settled(); }

 private:
  struct Outstanding {
    Schedule schedule;
    bool padded = false;  // its first segment only aligns it with an iteration
    uint64_t start = 0;
    double since = 0;
    bool mine = false;  // rank 0's own results have arrived
    std::vector<std::vector<learn::SegmentResult>> ranks;
    std::vector<int> missing;
  };

  bool GatherOffers(double now);
  void TakeMarks();
  // Calls per sample of a source; 0: not known yet, or the source cannot be used.
  uint64_t UnitOf(RewardSource source) const;
  std::optional<RewardSource> BestSource() const;
  void StartLearning(RewardSource source, uint64_t unit);
  std::vector<learn::ArmConfig> Candidates() const;
  void AddFewerChannels();
  bool OfferedByAll(const Config& config) const;
  void TakeResults(double now, std::vector<Reporter::Finished> finished);
  bool GatherResults(uint32_t epoch, Outstanding* outstanding, double now);
  void Conclude(uint32_t epoch, const Outstanding& outstanding);
  // Proposes the next epoch if it is due; once settled, several (see WantsMore).
  void Propose(double now);
  bool ProposeNext(double now);
  // Whether to write an epoch ahead, before any rank needs it.
  bool WantsMore(double now);
  bool MayTry(double now);
  Schedule Chosen(uint32_t epoch, bool turn);
  bool BeginWithAnIteration(uint64_t start, Schedule* schedule) const;
  Schedule Wait() const;
  // Whether iterations pass without a call of this context.
  bool Idle() const;
  void LogIfSettled();

  Learning* const learning_;
  LearningContext* const context_;
  std::vector<int> offers_missing_;
  uint64_t offered_ = ~uint64_t{0};
  bool offers_known_ = false;
  std::unique_ptr<learn::Learner> learner_;
  std::optional<RewardSource> source_;
  uint64_t unit_ = 1;
  std::deque<LearningContext::Mark> marks_[kRewardSources];
  learn::LineMatcher matcher_;
  uint64_t reports_ = 0;
  agree::Token token_;
  double token_since_ = 0;
  uint32_t proposed_ = 1;      // the last proposed epoch
  uint64_t proposed_end_ = 0;  // the first call after it; 0: unknown until it is entered
  uint64_t longest_rest_ = 0;  // in calls, of the epochs since the context was settled
  uint64_t frozen_calls_ = 0;  // calls in the last epoch proposed while frozen
  uint64_t rate_calls_ = 0;    // calls made at rate_since_
  double rate_since_ = 0;
  double calls_per_second_ = 0;
  std::map<uint32_t, Outstanding> outstanding_;
  std::vector<Config> channels_added_for_;
  bool said_settled_ = false;
  Config said_best_;
};

}  // namespace diapason::plugin
