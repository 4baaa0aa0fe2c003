// The learning thread's work for one communicator: takes in times, posts results, reads cells
// ahead, and on rank 0 proposes the next epoch.
#include <algorithm>

#include "base/mutex_lock.h"
#include "base/text.h"
#include "base/units.h"
#include "plugin/learning/context_explorer.h"
#include "plugin/learning/learned_policy.h"
#include "plugin/learning/learning.h"
#include "plugin/learning/learning_thread.h"
#include "plugin/learning/reporter.h"

namespace diapason::plugin {
namespace {

constexpr size_t kMostMarks = 4096;
constexpr double kPatience = 1.0;      // seconds to wait for the time of a last call
constexpr double kFilePatience = 5.0;  // the same for a reward file
constexpr double kLongestRun = 60.0;   // seconds to wait for a kernel's time
constexpr double kSaveInterval = 60.0;
constexpr double kAwayPause = 0.25;  // seconds without calls to the store after a failed one
constexpr uint32_t kMostAhead = 4;   // epochs whose cells are read ahead
// Seconds between two reads of a cell that was empty.
constexpr double kFirstReadAhead = 0.01;
constexpr double kLongestReadAhead = 1;
constexpr double kFarReadAhead = 5;  // seconds, if the next epoch is already known
constexpr double kStopInterval = 2.0;
// Which epochs are checked; the same on every rank.
constexpr uint32_t kFirstChecked = 16;
constexpr uint32_t kCheckedEvery = 8;
constexpr double kFirstLook = 0.05;  // for rank 0's list
constexpr int kMostLooks = 4;

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
      RecordTime(oldest.context, oldest.index, seconds);
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

bool Learning::Reached(const Status& status, double now) noexcept {
  if (!status.ok()) away_until_ = now + kAwayPause;
  return status.ok();
}

bool Learning::Poll(double now) {
  if (has_events()) TakeTimes(now);
  // Samples are taken before the end of their epochs is processed: they arrived first.
  std::vector<Sample> samples;
  Sample sample;
  while (samples_.Pop(&sample)) samples.push_back(sample);
  std::vector<LearningContext*> contexts;
  {
    const MutexLock lock(&list_mutex_);
    for (const auto& context : list_) contexts.push_back(context.get());
  }
  calls_of_all_ = 0;
  for (LearningContext* context : contexts) {
    TakeEntered(context, now);
    calls_of_all_ += CallsMade(*context);
  }
  TakeRuns();
  WatchStop(now);
  WatchFreeze(now);
  for (const Sample& one : samples) {
    one.context->reporter->Credit(one.index, one.index + 1, one.seconds);
  }
  if (leads()) ReadRewardFile(now, contexts);
  bool exploring = false;
  bool wants_pattern = contexts.empty() && wants_pattern_;
  for (LearningContext* context : contexts) {
    if (finish_wanted) return false;
    TendContext(context, now);
    ReadAhead(context, now);
    CheckRuns(context, now);
    const bool explores = context->newest.number < 2 || context->newest.schedule.Explores();
    exploring =
        exploring || explores || (context->explorer != nullptr && context->explorer->exploring());
    wants_pattern =
        wants_pattern || (context->explorer != nullptr && context->explorer->wants_pattern());
  }
  wants_pattern_ = wants_pattern;
  if (leads() && !options_.learned.empty() && now - last_saved_ > kSaveInterval) {
    last_saved_ = now;
    Save(contexts);
  }
  return exploring || contexts.empty();
}

void Learning::TakeEntered(LearningContext* context, double now) {
  std::vector<agree::EpochLog::Epoch> entered;
  std::optional<uint64_t> offer;
  {
    const MutexLock lock(&context->mutex);
    entered.swap(context->entered);
    if (context->offer_ready && !context->offer_posted) offer = context->offer;
  }
  if (offer.has_value() && !store_away(now)) {
    const auto posted =
        options_.store->Propose(context->prefix + Format("o.%d", options_.rank),
                                Format("%llx", static_cast<unsigned long long>(*offer)));
    context->offer_posted = Reached(posted.ok() ? Status() : posted.status(), now);
  }
  for (const agree::EpochLog::Epoch& epoch : entered) {
    context->reporter->Entered(epoch, now);
    context->runs.Entered(epoch);
    context->newest = epoch;
    context->next_read_ahead = 0;
    context->read_ahead_pause = kFirstReadAhead;
  }
}

void Learning::TendContext(LearningContext* context, double now) {
  const double patience = reward_lines_ != nullptr ? kFilePatience : kPatience;
  std::vector<Reporter::Finished> finished = context->reporter->TakeFinished(now, patience);
  if (context->explorer != nullptr) {
    context->explorer->Poll(now, std::move(finished));
  } else if (Reports(options_.rank, options_.shape.ranks)) {
    for (const Reporter::Finished& one : finished) context->reporter->Post(one);
  }
}

void Learning::ReadRewardFile(double now, const std::vector<LearningContext*>& contexts) {
  if (options_.reward != "auto" && options_.reward != "file") return;
  if (reward_lines_ == nullptr) reward_lines_ = std::make_unique<RewardFile>(RewardFilePath());
  std::string problem;
  for (const learn::RewardLine& line : reward_lines_->Poll(now, &problem)) {
    if (line.ranks != options_.shape.ranks || line.nodes != options_.shape.nodes) continue;
    for (LearningContext* context : contexts) {
      if (context->collective == line.collective && context->band == SizeBand(line.bytes)) {
        context->explorer->Line(line.seconds);
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

void Learning::Save(const std::vector<LearningContext*>& contexts) {
  std::vector<LearnedContext> learned;
  for (const LearningContext* context : contexts) {
    if (!context->explorer->decided()) continue;
    learned.push_back({context->collective, context->band, context->explorer->best(),
                       context->explorer->Summary()});
  }
  if (learned.empty()) return;
  const Status saved =
      SaveLearned(options_.learned, options_.host.library, options_.shape, learned);
  if (!saved.ok()) log_.Warn("what was learned could not be kept: " + saved.message());
}

// Reads the cells of the next epochs, so that entering them needs no call to the store.
void Learning::ReadAhead(LearningContext* context, double now) {
  if (now < context->next_read_ahead || store_away(now)) return;
  const uint32_t next = std::max(context->newest.number + 1, 2u);
  // Back off: many ranks poll, and the next epoch may be far away.
  context->read_ahead_pause = std::min(2 * context->read_ahead_pause, kLongestReadAhead);
  context->next_read_ahead =
      now + (context->known.Has(next) ? kFarReadAhead : context->read_ahead_pause);
  for (uint32_t epoch = next; epoch < next + kMostAhead; ++epoch) {
    if (context->known.Has(epoch)) continue;
    const auto cell = options_.store->Read(agree::EpochLog::CellKey(context->prefix, epoch));
    if (!Reached(cell.ok() ? Status() : cell.status(), now) || !cell.value()) return;
    context->known.Put(epoch, *cell.value());
  }
}

void Learning::TakeRuns() {
  Run run;
  while (runs_.Pop(&run)) run.context->runs.Add(run.sample);
}

// Rank 0 posts its runs; the other ranks compare theirs.
void Learning::CheckRuns(LearningContext* context, double now) {
  std::deque<RunSamples::Epoch>& over = context->runs.over();
  while (!over.empty() && !store_away(now) && stop_wanted_.empty()) {
    RunSamples::Epoch& epoch = over.front();
    const bool checked = epoch.number < kFirstChecked || epoch.number % kCheckedEvery == 0;
    if (checked && epoch.looks < kMostLooks) {
      const std::string key = context->prefix + Format("d.%u", epoch.number);
      if (leads()) {
        const auto left = options_.store->Propose(key, RunSamplesText(epoch.samples));
        if (!Reached(left.ok() ? Status() : left.status(), now)) return;
      } else {
        if (now < epoch.next_look) return;
        const auto theirs = options_.store->Read(key);
        if (!Reached(theirs.ok() ? Status() : theirs.status(), now)) return;
        if (!theirs.value()) {
          epoch.next_look = now + kFirstLook * static_cast<double>(1 << (3 * epoch.looks++));
          return;
        }
        const auto parsed = ParseRunSamples(*theirs.value());
        if (parsed.has_value()) Differs(*context, CompareRuns(epoch.samples, *parsed));
      }
    }
    over.pop_front();
  }
}

void Learning::Differs(const LearningContext& context, const RunDifference& difference) {
  if (difference.kind == RunDifference::Kind::kNone) return;
  const bool runs = difference.kind == RunDifference::Kind::kRuns;
  stop_wanted_ =
      Format("%s:%s up to %s, rank %d: %s", runs ? "runs" : "clocks",
             std::string(CollectiveName(context.collective)).c_str(),
             FormatBytes(BandLast(context.band)).c_str(), options_.rank, difference.text.c_str());
  next_stop_look_ = 0;
}

// Checks whether a rank of the communicator has reported a difference, and reports one found by
// this rank.
void Learning::WatchStop(double now) {
  if (!stop_text_.empty() || now < next_stop_look_ || store_away(now)) return;
  next_stop_look_ = now + kStopInterval;
  const std::string key = options_.prefix + "stop";
  if (stop_wanted_.empty()) {
    const auto text = options_.store->Read(key);
    if (Reached(text.ok() ? Status() : text.status(), now) && text.value()) TakeStop(*text.value());
    return;
  }
  const auto text = options_.store->Propose(key, stop_wanted_);
  if (Reached(text.ok() ? Status() : text.status(), now)) TakeStop(text.value());
}

void Learning::TakeStop(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string what = colon == std::string::npos ? text : text.substr(colon + 1);
  if (text.compare(0, 5, "runs:") == 0) {
    stop_text_ = "ranks have run one call differently: " + what;
    diverged_.store(true, std::memory_order_release);
    return;
  }
  stop_text_ = "ranks count calls differently: " + what;
  clocks_differ_ = true;
  log_.Warn(stop_text_ + "; nothing is tried any more in this communicator, on any rank");
}

void Learning::WatchFreeze(double now) {
  if (!leads()) return;
  const bool wanted = clocks_differ_ ||
                      LearningThread::Instance().Frozen(options_.store, options_.freeze_file, now);
  if (wanted == frozen_) return;
  frozen_ = wanted;
  log_.Info(wanted ? "frozen: nothing is tried until it is thawed, from the first epoch on that is "
                     "not agreed yet"
                   : "thawed: configurations are tried again");
}

void Learning::Finish(bool forget, Deadline deadline) {
  std::vector<LearningContext*> contexts;
  {
    const MutexLock lock(&list_mutex_);
    for (const auto& context : list_) contexts.push_back(context.get());
  }
  if (leads() && !options_.learned.empty()) Save(contexts);
  if (!forget) return;
  finished_ = true;
  // Only rank 0 reads these cells, so they can be removed now. The other cells must stay until all
  // ranks are done, because another rank may still have calls to make (the root of a broadcast is
  // done before the others have begun).
  for (LearningContext* context : contexts) {
    if (context->explorer == nullptr) continue;
    context->explorer->Leave(deadline);
    context->explorer.reset();
    options_.store->Forget(context->prefix + "w.", deadline);
    options_.store->Forget(context->prefix + "o.", deadline);
  }
  options_.store->Done(options_.prefix, static_cast<int>(options_.shape.ranks), deadline);
}

}  // namespace diapason::plugin
