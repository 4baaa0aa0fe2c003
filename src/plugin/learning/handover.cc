#include "plugin/learning/handover.h"

#include "base/mutex_lock.h"
#include "base/text.h"
#include "base/units.h"

namespace diapason::plugin {
namespace {

constexpr size_t kMostMarks = 4096;

}  // namespace

std::string_view RewardSourceName(RewardSource source) {
  constexpr std::string_view kNames[kRewardSources] = {"step",    "report", "file",
                                                       "pattern", "cycle",  "gpu"};
  return kNames[static_cast<size_t>(source)];
}

std::string ContextHandover::Name() const {
  return std::string(CollectiveName(collective)) + " up to " + FormatBytes(BandLast(band));
}

LearningHandover::LearningHandover(LearningOptions agreed, const policy::Policy& rows,
                                   const HostLog& to, journal::Journal* records)
    : options(std::move(agreed)),
      policy(rows),
      log(to),
      journal(records),
      events(GpuEvents::Make(options.host.library)),
      wants_pattern(leads() && options.learns() &&
                    (options.reward == "auto" || options.reward == "pattern")),
      cycle_use(leads() && options.learns() && events != nullptr &&
                        (options.reward == "auto" || options.reward == "cycle")
                    ? CycleUse::kAlways
                    : CycleUse::kNever) {}

LearningHandover::~LearningHandover() {
  // The end of the communicator did not wait for the learning thread: its GPU context may be
  // destroyed by now.
  if (late) static_cast<void>(events.release());
}

uint64_t LearningHandover::CallsMade(const ContextHandover& context) const noexcept {
  const uint32_t pending = context.pending;
  if (!launched || pending == 0) return context.committed;
  return context.committed + (calls == 1 ? 1 : pending);
}

void LearningHandover::Add(ContextHandover* context) {
  const MutexLock lock(&list_mutex_);
  context->number = static_cast<uint32_t>(list_.size());
  list_.push_back(context);
}

std::vector<ContextHandover*> LearningHandover::Contexts() const {
  const MutexLock lock(&list_mutex_);
  return list_;
}

void LearningHandover::Mark(RewardSource source, double now) noexcept {
  if (!leads()) return;
  const MutexLock list_lock(&list_mutex_);
  for (ContextHandover* context : list_) {
    const MutexLock lock(&context->mutex);
    if (context->marks.size() < kMostMarks) {
      context->marks.push_back({CallsMade(*context), now, source});
    }
  }
}

bool LearningHandover::Report(Collective collective, uint64_t bytes, double seconds) noexcept {
  if (!leads() || !(seconds > 0)) return false;
  const int band = SizeBand(bytes);
  const MutexLock list_lock(&list_mutex_);
  for (ContextHandover* context : list_) {
    if (context->collective != collective || context->band != band) continue;
    const MutexLock lock(&context->mutex);
    const uint64_t made = CallsMade(*context);
    if (made == 0 || context->reported.size() >= kMostMarks) return false;
    context->reported.push_back({made, seconds, RewardSource::kReport});
    return true;
  }
  return false;
}

}  // namespace diapason::plugin
