#include "plugin/learning/reward_sources.h"

#include "base/mutex_lock.h"
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

void RewardSources::Line(double seconds) {
  // Lines count from the communicator's first call on.
  const auto range = matcher_.Line(learning_->CallsMade(*context_));
  if (range.has_value() && source_ == RewardSource::kFile) {
    reporter_->Credit(range->first, range->end, seconds);
  }
}

uint64_t RewardSources::UnitOf(RewardSource source) const {
  switch (source) {
    case RewardSource::kReport:
      return reports_ >= kReportsToTrust ? 1 : 0;
    case RewardSource::kFile:
      return matcher_.calls_per_line();
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
  // Lines of a reward file count from the first call on.
  const bool marked = covers_iterations() && !marks(*source_).empty();
  const uint64_t boundary = marked ? marks(*source_).back().calls : 0;
  const uint64_t past = (start + unit_ - boundary % unit_) % unit_;
  return past == 0 ? 0 : unit_ - past;
}

}  // namespace diapason::plugin
