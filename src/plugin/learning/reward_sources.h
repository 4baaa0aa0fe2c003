#pragma once

#include <deque>
#include <optional>
#include <string>

#include "learn/cycle_watch.h"
#include "learn/line_matcher.h"
#include "plugin/learning/handover.h"
#include "plugin/learning/reporter.h"

namespace diapason::plugin {

// Where rank 0 gets the rewards of one context from: finds the best source that works, and credits
// the reporter with its times. Runs on the learning thread only; the arguments outlive it.
class RewardSources {
 public:
  RewardSources(const LearningHandover* learning, ContextHandover* context, Reporter* reporter)
      : learning_(learning), context_(context), reporter_(reporter) {}

  // Takes the marks and reports that were handed over.
  void Take();
  // A line of the reward file for this context.
  void Line(const learn::RewardLine& line) { matcher_.Line(line); }
  // The reward file was read to its end.
  void FileRead();
  // From a call to the next one, and the time of a call on the GPU.
  void Cycle(const LearningHandover::Cycle& cycle);
  void GpuTime(uint64_t index, double seconds);
  // Uses the best source there is. True: a better one has appeared, the iterations have changed, or
  // another one has to do instead of a file that was not complete, or of cycles of a program that
  // has ceased to wait for its calls.
  bool Choose();

  // The source in use, and its calls per sample.
  std::optional<RewardSource> source() const { return source_; }
  uint64_t unit() const { return unit_; }
  bool covers_iterations() const { return source_.has_value() && CoversIterations(*source_); }
  // Why no source but the reward file can be used: "diapason_step was not called, ..."; empty if
  // the settings allow the reward file alone. REQUIRES: source() has none.
  std::string WhyNone() const;
  // Why the lines of the reward file cannot be used, see LineMatcher::Trouble.
  std::optional<std::string> FileTrouble() const { return matcher_.Trouble(); }
  uint64_t file_lines() const { return matcher_.lines(); }
  // Whether iterations found in the order of calls could be a better source.
  bool wants_pattern() const;
  // Whether cycles could be a better source, or are the one in use.
  CycleUse UseOfCycles() const;
  // Whether iterations pass without a call of this context.
  bool Idle() const;
  // The calls from `start` on that belong to an iteration begun before it.
  uint64_t CallsToBoundary(uint64_t start) const;

 private:
  // Calls per sample of a source; 0: not known yet, or the source cannot be used.
  uint64_t UnitOf(RewardSource source) const;
  std::string WhyNoCycles() const;
  const std::deque<RewardMark>& marks(RewardSource source) const {
    return marks_[static_cast<size_t>(source)];
  }

  const LearningHandover* const learning_;
  ContextHandover* const context_;
  Reporter* const reporter_;
  std::optional<RewardSource> source_;
  uint64_t unit_ = 1;
  std::deque<RewardMark> marks_[kRewardSources];
  learn::LineMatcher matcher_;
  learn::CycleWatch cycles_;
  uint64_t reports_ = 0;
};

}  // namespace diapason::plugin
