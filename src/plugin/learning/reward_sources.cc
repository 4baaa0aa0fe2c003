#include "plugin/learning/reward_sources.h"

#include "base/mutex_lock.h"
#include "base/text.h"
#include "plugin/profiler/event_mask.h"

namespace diapason::plugin {
namespace {

// Equal distances between boundaries before a source is trusted.
constexpr size_t kMarksToTrust = 5;
constexpr size_t kMarksKept = 64;
constexpr size_t kIdleMarks = 8;
constexpr uint64_t kReportsToTrust = 4;

}  // namespace

void RewardSources::Take() {
  std::deque<RewardMark> marks;
  std::deque<RewardMark> reported;
  {
    const MutexLock lock(&context_->mutex);
    marks.swap(context_->marks);
    reported.swap(context_->reported);
  }
  for (const RewardMark& mark : marks) {
    std::deque<RewardMark>& known = marks_[static_cast<size_t>(mark.source)];
    if (source_ == mark.source && !known.empty() && mark.calls == known.back().calls + unit_) {
      reporter_->Credit(known.back().calls, mark.calls, mark.time - known.back().time);
    }
    known.push_back(mark);
    if (known.size() > kMarksKept) known.pop_front();
  }
  for (const RewardMark& report : reported) {
    ++reports_;
    if (source_ == RewardSource::kReport) {
      reporter_->Credit(report.calls - 1, report.calls, report.time);
    }
  }
}

void RewardSources::FileRead() {
  for (const auto& credit : matcher_.Read(learning_->CallsMade(*context_))) {
    if (source_ == RewardSource::kFile) {
      reporter_->Credit(credit.first, credit.end, credit.seconds);
    }
  }
}

void RewardSources::Cycle(const LearningHandover::Cycle& cycle) {
  cycles_.AddCycle(cycle.seconds, cycle.ended);
  if (source_ == RewardSource::kCycle) {
    reporter_->Credit(cycle.index, cycle.index + 1, cycle.seconds);
  }
}

void RewardSources::GpuTime(uint64_t index, double seconds) {
  cycles_.AddGpuTime(seconds);
  if (source_ == RewardSource::kGpu) reporter_->Credit(index, index + 1, seconds);
}

uint64_t RewardSources::UnitOf(RewardSource source) const {
  switch (source) {
    case RewardSource::kReport:
      return reports_ >= kReportsToTrust ? 1 : 0;
    case RewardSource::kFile:
      return matcher_.calls_per_line();
    case RewardSource::kCycle:
      return cycles_.IsReward() ? 1 : 0;
    case RewardSource::kGpu:
      if (learning_->events != nullptr) return 1;
      return !EventMask::Instance().TimesForbidden() &&
                     TimesPossible(learning_->options.shape.ranks)
                 ? 1
                 : 0;
    case RewardSource::kStep:
    case RewardSource::kPattern:
      break;
  }
  const std::deque<RewardMark>& known = marks(source);
  if (known.size() <= kMarksToTrust) return 0;
  const uint64_t unit = known.back().calls - known[known.size() - 2].calls;
  for (size_t i = known.size() - kMarksToTrust; i < known.size(); ++i) {
    if (known[i].calls - known[i - 1].calls != unit) return 0;
  }
  return unit;
}

bool RewardSources::Choose() {
  if (source_ == RewardSource::kFile && matcher_.lost()) {
    source_.reset();
    learning_->log.Warn("the lines of the reward file for " + context_->Name() + " " +
                        matcher_.Trouble().value_or("do not fit the calls") +
                        "; they are not used any more");
  }
  // A program that ceases to wait launches its next call before this one has ended.
  if (source_ == RewardSource::kCycle && !cycles_.IsReward()) source_.reset();
  const std::string& wanted = learning_->options.reward;
  for (int i = 0; i < kRewardSources; ++i) {
    const auto source = static_cast<RewardSource>(i);
    if (wanted != "auto" && wanted != RewardSourceName(source)) continue;
    const uint64_t unit = UnitOf(source);
    if (unit == 0) continue;
    const bool better = !source_.has_value() || source < *source_;
    if (!better && (source != *source_ || unit == unit_)) return false;
    source_ = source;
    unit_ = unit;
    return true;
  }
  return false;
}

std::string RewardSources::WhyNone() const {
  const std::string& wanted = learning_->options.reward;
  std::vector<std::string> reasons;
  for (const RewardSource source :
       {RewardSource::kStep, RewardSource::kReport, RewardSource::kPattern, RewardSource::kCycle,
        RewardSource::kGpu}) {
    if (wanted != "auto" && wanted != RewardSourceName(source)) continue;
    switch (source) {
      case RewardSource::kStep:
        reasons.emplace_back(marks(source).empty()
                                 ? "diapason_step was not called"
                                 : "the number of calls between two diapason_step changes");
        break;
      case RewardSource::kReport:
        reasons.emplace_back("diapason_report was not called for these calls");
        break;
      case RewardSource::kPattern:
        reasons.emplace_back("no iterations were found in the order of the calls");
        break;
      case RewardSource::kCycle:
        // With `auto` the GPU time, which has the same needs, says enough.
        if (wanted == "cycle") reasons.push_back(WhyNoCycles());
        break;
      default:
        reasons.emplace_back(EventMask::Instance().TimesForbidden()
                                 ? "captured graphs forbid the library's GPU times, and the GPU "
                                   "driver's events cannot be used"
                                 : "neither the GPU driver's events nor the library's GPU times "
                                   "can be used");
        break;
    }
  }
  return Join(reasons, ", ");
}

std::string RewardSources::WhyNoCycles() const {
  if (learning_->events == nullptr) return "the GPU driver's events cannot be used";
  return cycles_.Trouble();
}

CycleUse RewardSources::UseOfCycles() const {
  const std::string& wanted = learning_->options.reward;
  if (learning_->events == nullptr || (wanted != "auto" && wanted != "cycle")) {
    return CycleUse::kNever;
  }
  if (source_.has_value() && *source_ < RewardSource::kCycle) return CycleUse::kNever;
  return source_.has_value() || cycles_.GivenUp() ? CycleUse::kWhileTrying : CycleUse::kAlways;
}

bool RewardSources::wants_pattern() const {
  const std::string& wanted = learning_->options.reward;
  return wanted == "pattern" ||
         (wanted == "auto" && (!source_.has_value() || *source_ >= RewardSource::kPattern));
}

bool RewardSources::Idle() const {
  if (!source_.has_value()) return false;
  const std::deque<RewardMark>& known = marks(*source_);
  return known.size() > kIdleMarks && known[known.size() - kIdleMarks].calls == known.back().calls;
}

uint64_t RewardSources::CallsToBoundary(uint64_t start) const {
  if (unit_ <= 1) return 0;
  uint64_t boundary = 0;
  if (source_ == RewardSource::kFile) {
    boundary = matcher_.boundary();
  } else if (covers_iterations() && !marks(*source_).empty()) {
    boundary = marks(*source_).back().calls;
  }
  const uint64_t past = (start + unit_ - boundary % unit_) % unit_;
  return past == 0 ? 0 : unit_ - past;
}

}  // namespace diapason::plugin
