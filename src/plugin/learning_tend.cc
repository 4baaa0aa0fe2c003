// What the steward does for one communicator: times in, results out, and on rank 0 what comes next.
#include <algorithm>

#include "base/mutex_lock.h"
#include "base/text.h"
#include "plugin/leader.h"
#include "plugin/learned_policy.h"
#include "plugin/learning.h"
#include "plugin/reporter.h"

namespace diapason::plugin {
namespace {

constexpr size_t kMostMarks = 4096;
constexpr double kPatience = 1.0;      // seconds a last call's time may take to arrive
constexpr double kFilePatience = 5.0;  // the same for a reward file
constexpr double kLongestRun = 60.0;   // of a kernel whose time is waited for
constexpr double kSaveInterval = 60.0;

}  // namespace

void Learning::TakeTimes(double now) {
  Launch launch;
  while (launches_.Pop(&launch)) {
    launch.since = now;
    running_.push_back(launch);
  }
  // Kernels of one communicator end in the order in which they were launched.
  while (!running_.empty()) {
    const Launch& oldest = running_.front();
    double seconds = 0;
    const GpuEvents::State state = events_->Look(oldest.pair, &seconds);
    if (state == GpuEvents::State::kRunning) {
      if (now - oldest.since < kLongestRun) return;
      events_->Discard(oldest.pair);
    } else if (state == GpuEvents::State::kDone) {
      Took(oldest.context, oldest.index, seconds);
    }
    running_.pop_front();
  }
}

void Learning::Mark(RewardSource source, double now) noexcept {
  if (!leads()) return;
  const MutexLock list_lock(&list_mutex_);
  for (const auto& context : list_) {
    const MutexLock lock(&context->mutex);
    if (context->marks.size() < kMostMarks) {
      context->marks.push_back({CallsMade(*context), now, source});
    }
  }
}

bool Learning::Report(Collective collective, uint64_t bytes, double seconds) noexcept {
  if (!leads() || !(seconds > 0)) return false;
  const int band = SizeBand(bytes);
  const MutexLock list_lock(&list_mutex_);
  for (const auto& context : list_) {
    if (context->collective != collective || context->band != band) continue;
    const MutexLock lock(&context->mutex);
    const uint64_t made = CallsMade(*context);
    if (made == 0 || context->reported.size() >= kMostMarks) return false;
    context->reported.push_back({made, seconds, RewardSource::kReport});
    return true;
  }
  return false;
}

bool Learning::Tend(double now) {
  if (has_events()) TakeTimes(now);
  // Samples are taken before the news of their epochs: these were there first.
  std::vector<Sample> samples;
  Sample sample;
  while (samples_.Pop(&sample)) samples.push_back(sample);
  std::vector<Context*> contexts;
  {
    const MutexLock lock(&list_mutex_);
    for (const auto& context : list_) contexts.push_back(context.get());
  }
  calls_of_all_ = 0;
  for (Context* context : contexts) {
    TakeEntered(context, now);
    calls_of_all_ += CallsMade(*context);
  }
  for (const Sample& one : samples) {
    one.context->reporter->Credit(one.index, one.index + 1, one.seconds);
  }
  if (leads()) ReadRewardFile(now, contexts);
  bool exploring = false;
  bool wants_pattern = contexts.empty() && wants_pattern_;
  for (Context* context : contexts) {
    TendContext(context, now);
    const bool explores = context->newest.number < 2 || context->newest.schedule.Explores();
    exploring =
        exploring || explores || (context->leader != nullptr && context->leader->exploring());
    wants_pattern =
        wants_pattern || (context->leader != nullptr && context->leader->wants_pattern());
  }
  wants_pattern_ = wants_pattern;
  if (leads() && !options_.learned.empty() && now - last_saved_ > kSaveInterval) {
    last_saved_ = now;
    Save(contexts);
  }
  return exploring || contexts.empty();
}

void Learning::TakeEntered(Context* context, double now) {
  std::vector<agree::EpochLog::Epoch> entered;
  std::optional<uint64_t> offer;
  {
    const MutexLock lock(&context->mutex);
    entered.swap(context->entered);
    if (context->offer_ready && !context->offer_posted) offer = context->offer;
  }
  if (offer.has_value()) {
    context->offer_posted = true;
    (void)options_.store->Propose(context->prefix + Format("o.%d", options_.rank),
                                  Format("%llx", static_cast<unsigned long long>(*offer)));
  }
  for (const agree::EpochLog::Epoch& epoch : entered) {
    context->reporter->Entered(epoch, now);
    context->newest = epoch;
  }
}

void Learning::TendContext(Context* context, double now) {
  const double patience = reward_lines_ != nullptr ? kFilePatience : kPatience;
  std::vector<Reporter::Finished> finished = context->reporter->TakeFinished(now, patience);
  if (context->leader != nullptr) {
    context->leader->Tend(now, std::move(finished));
  } else if (Reports(options_.rank, options_.shape.ranks)) {
    for (const Reporter::Finished& one : finished) context->reporter->Post(one);
  }
}

void Learning::ReadRewardFile(double now, const std::vector<Context*>& contexts) {
  if (options_.reward != "auto" && options_.reward != "file") return;
  if (reward_lines_ == nullptr) reward_lines_ = std::make_unique<RewardFile>(RewardFilePath());
  std::string problem;
  for (const learn::RewardLine& line : reward_lines_->Poll(now, &problem)) {
    if (line.ranks != options_.shape.ranks || line.nodes != options_.shape.nodes) continue;
    for (Context* context : contexts) {
      if (context->collective == line.collective && context->band == SizeBand(line.bytes)) {
        context->leader->Line(line.seconds);
      }
    }
  }
  if (!problem.empty()) log_.Warn(problem);
}

std::string Learning::RewardFilePath() const {
  if (!options_.reward_file.empty()) return options_.reward_file;
  return Format("/tmp/nccl_tuner_rewards_%llu.log",
                static_cast<unsigned long long>(options_.comm_id));
}

void Learning::Save(const std::vector<Context*>& contexts) {
  std::vector<LearnedContext> learned;
  for (const Context* context : contexts) {
    if (!context->leader->decided()) continue;
    learned.push_back(
        {context->collective, context->band, context->leader->best(), context->leader->Summary()});
  }
  if (learned.empty()) return;
  const Status saved =
      SaveLearned(options_.learned, options_.host.library, options_.shape, learned);
  if (!saved.ok()) log_.Warn("what was learned could not be kept: " + saved.message());
}

void Learning::Finish(bool forget) {
  std::vector<Context*> contexts;
  {
    const MutexLock lock(&list_mutex_);
    for (const auto& context : list_) contexts.push_back(context.get());
  }
  if (!leads()) return;
  if (!options_.learned.empty()) Save(contexts);
  if (!forget) return;
  // What only rank 0 reads. Another rank may still have calls to make (a broadcast's root is done
  // before the others have begun), so what they run must stay.
  for (Context* context : contexts) {
    context->leader.reset();
    options_.store->Forget(context->prefix + "w.");
    options_.store->Forget(context->prefix + "o.");
  }
}

}  // namespace diapason::plugin
