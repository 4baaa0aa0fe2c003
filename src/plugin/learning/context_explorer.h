#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agree/token.h"
#include "learn/learner.h"
#include "plugin/learning/background_store.h"
#include "plugin/learning/candidates.h"
#include "plugin/learning/epoch_proposer.h"
#include "plugin/learning/handover.h"
#include "plugin/learning/reporter.h"
#include "plugin/learning/reward_sources.h"

namespace diapason::plugin {

// Rank 0's exploration of one context: which configuration is tried next, and the results. Runs on
// the learning thread only; the arguments of its constructor outlive it. Correctness does not
// depend on it: all ranks run what the cells say, whatever this class proposes or fails to propose.
class ContextExplorer {
 public:
  ContextExplorer(const LearningHandover* learning, ContextHandover* context, Reporter* reporter,
                  BackgroundStore* store);

  // Called last: releases the exploration token for other contexts.
  void Leave(Deadline deadline) { (void)token_.Release(deadline); }

  // The state of the communicator at a poll.
  struct Moment {
    double now = 0;
    bool frozen = false;        // nothing may be tried
    uint64_t calls_of_all = 0;  // of all contexts
  };
  void Poll(const Moment& moment, std::vector<Reporter::Finished> finished);
  // A line of the reward file for this context.
  void Line(const learn::RewardLine& line) { rewards_.Line(line); }
  // It was read to its end.
  void FileRead() { rewards_.FileRead(); }
  void Cycle(const LearningHandover::Cycle& cycle) { rewards_.Cycle(cycle); }
  void GpuTime(uint64_t index, double seconds) { rewards_.GpuTime(index, seconds); }

  // What has been learned from so far.
  bool has_results() const { return has_results_; }
  const RewardSources& rewards() const { return rewards_; }
  // Why has_results() is false, without what the reward file has to do with it; empty: only that.
  std::string WhyNothing() const;

  bool exploring() const { return learner_ != nullptr && !learner_->settled(); }
  bool decided() const { return learner_ != nullptr && learner_->settled(); }
  bool wants_pattern() const { return !decided() && rewards_.wants_pattern(); }
  // The results for the learned policy. REQUIRES: decided().
  std::vector<learn::ArmSummary> Summary() const { return learner_->Summary(); }
  Config best() const { return learner_->best(); }

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

  void StartLearning();
  void TakeResults(double now, std::vector<Reporter::Finished> finished);
  bool GatherResults(uint32_t epoch, Outstanding* outstanding, double now);
  void Conclude(uint32_t epoch, const Outstanding& outstanding);
  void WriteRewards(uint32_t epoch, const Outstanding& outstanding,
                    const std::vector<learn::SegmentResult>& results) const;
  // Proposes the next epoch if it is due; once settled, several (see WantsMore).
  void Propose(const Moment& moment);
  bool ProposeNext(const Moment& moment);
  // Whether to write an epoch ahead, before any rank needs it.
  bool WantsMore(const Moment& moment) const;
  bool MayTry(const Moment& moment);
  Schedule Chosen(uint32_t epoch, bool turn, bool frozen);
  Schedule Wait() const;
  void LogIfSettled();

  const LearningHandover* const learning_;
  ContextHandover* const context_;
  Reporter* const reporter_;
  BackgroundStore* const store_;
  RewardSources rewards_;
  Candidates candidates_;
  bool offers_known_ = false;
  bool has_results_ = false;
  std::unique_ptr<learn::Learner> learner_;
  bool learned_ = false;  // results since the last poll
  agree::Token token_;
  double token_since_ = 0;
  EpochProposer proposer_;
  uint64_t longest_rest_ = 0;  // in calls, of the epochs since the context was settled
  uint64_t frozen_calls_ = 0;  // calls in the last epoch proposed while frozen
  std::map<uint32_t, Outstanding> outstanding_;
  bool said_settled_ = false;
  Config said_best_;
};

}  // namespace diapason::plugin
