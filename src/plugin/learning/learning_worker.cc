#include "plugin/learning/learning_worker.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/mutex_lock.h"
#include "base/text.h"
#include "plugin/learning/learned_policy.h"

namespace diapason::plugin {
namespace {

constexpr double kPatience = 1.0;      // seconds to wait for the time of a last call
constexpr double kFilePatience = 5.0;  // the same for a reward file
constexpr double kLongestRun = 60.0;   // seconds to wait for a kernel's time
constexpr double kSaveInterval = 60.0;
constexpr double kFreezeInterval = 1.0;
constexpr long kEndPauseNs = 1000000;
constexpr uint32_t kMostAhead = 4;  // epochs whose cells are read ahead
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

bool FreezeWatch::Frozen(agree::CellStore* store, const std::string& file, double now) {
  if (now - looked_at_ < kFreezeInterval) return frozen_;
  looked_at_ = now;
  if (log_ == nullptr) log_ = std::make_unique<agree::FreezeLog>(store);
  // On an error the state stays as it was.
  (void)log_->Look();
  frozen_ = log_->frozen() || (!file.empty() && access(file.c_str(), F_OK) == 0);
  return frozen_;
}

LearningWorker::Context::Context(LearningHandover* learning, ContextHandover* context,
                                 BackgroundStore* store)
    : shared(context), reporter(learning->options.store, context->prefix, learning->options.rank) {
  if (!learning->leads()) return;
  if (learning->options.ordered) {
    orders = std::make_unique<OrderProposer>(learning, context, &reporter, store);
  } else if (learning->options.compare) {
    turns = std::make_unique<TurnProposer>(learning, context, &reporter, store);
  } else {
    explorer = std::make_unique<ContextExplorer>(learning, context, &reporter, store);
  }
}

LearningWorker::LearningWorker(std::shared_ptr<LearningHandover> handover)
    : handover_(std::move(handover)), options_(handover_->options), store_(options_.store) {
  // Here, before the communicator's first call: what the file has now is not about its calls.
  if (!handover_->leads() || !options_.learns()) return;
  if (options_.reward != "auto" && options_.reward != "file") return;
  reward_file_ = std::make_unique<RewardFile>(
      !options_.reward_file.empty() ? options_.reward_file
                                    : Format("/tmp/nccl_tuner_rewards_{}.log", options_.comm_id));
}

bool LearningWorker::Poll(double now, JobWatch* job) noexcept {
  const MutexLock lock(&mutex_);
  bool busy = false;
  try {
    // It may have ended since the caller took it from its list.
    if (finished_) return false;
    if (!finish_wanted_) busy = PollAll(now, job);
    if (finish_wanted_.exchange(false)) {
      Finish(std::chrono::steady_clock::now() + agree::kUsualLimit);
    }
  } catch (...) {
  }
  return busy;
}

void LearningWorker::End(Deadline deadline) noexcept {
  // From now on Poll abandons its work as soon as it can; Poll or this function finishes, whichever
  // gets the lock first.
  finish_wanted_ = true;
  while (pthread_mutex_trylock(&mutex_) != 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      handover_->late = true;
      return;
    }
    const timespec pause{0, kEndPauseNs};
    nanosleep(&pause, nullptr);
  }
  try {
    if (finish_wanted_.exchange(false)) Finish(deadline);
  } catch (...) {  // no memory: the store forgets the cells later
  }
  // Here, while the communicator's GPU context still exists.
  handover_->events.reset();
  pthread_mutex_unlock(&mutex_);
}

void LearningWorker::TakeContexts() {
  const std::vector<ContextHandover*> listed = handover_->Contexts();
  while (contexts_.size() < listed.size()) {
    contexts_.push_back(
        std::make_unique<Context>(handover_.get(), listed[contexts_.size()], &store_));
  }
}

void LearningWorker::TakeTimes(double now) {
  LearningHandover::Launch launch;
  while (handover_->launches.Pop(&launch)) {
    launch.since = now;
    running_.push_back(launch);
  }
  // Kernels of one communicator end in the order in which they were launched.
  while (!running_.empty()) {
    const LearningHandover::Launch& oldest = running_.front();
    double seconds = 0;
    const GpuEvents::State state = handover_->events->Look(oldest.pair, &seconds);
    if (state == GpuEvents::State::kRunning) {
      if (now - oldest.since < kLongestRun) return;
      handover_->events->Discard(oldest.pair);
    } else if (state == GpuEvents::State::kDone) {
      handover_->samples.Push({oldest.context, oldest.index, seconds});
    }
    running_.pop_front();
  }
}

void LearningWorker::TakeSample(const LearningHandover::Sample& sample) {
  Context& context = *contexts_[sample.context];
  if (context.explorer != nullptr) {
    context.explorer->GpuTime(sample.index, sample.seconds);
  } else {
    context.reporter.Credit(sample.index, sample.index + 1, sample.seconds);
  }
}

bool LearningWorker::PollAll(double now, JobWatch* job) {
  if (handover_->events != nullptr) TakeTimes(now);
  // Samples are taken before the end of their epochs is processed: they arrived first.
  std::vector<LearningHandover::Sample> samples;
  LearningHandover::Sample sample;
  while (handover_->samples.Pop(&sample)) samples.push_back(sample);
  TakeContexts();
  calls_of_all_ = 0;
  for (const auto& context : contexts_) {
    TakeEntered(context.get(), now);
    calls_of_all_ += handover_->CallsMade(*context->shared);
  }
  TakeRuns();
  WatchStop(now);
  WatchFreeze(now, &job->freeze);
  WatchTurns(now, job);
  WatchOrders(now, job);
  for (const LearningHandover::Sample& one : samples) TakeSample(one);
  LearningHandover::Cycle cycle;
  while (handover_->cycles.Pop(&cycle)) {
    // Of contexts that were not taken yet, none is lost: the first epoch has no results.
    if (cycle.context >= contexts_.size()) continue;
    ContextExplorer* explorer = contexts_[cycle.context]->explorer.get();
    if (explorer != nullptr) explorer->Cycle(cycle);
  }
  if (handover_->leads()) ReadRewardFile(now);
  // Turns and orders are followed by rank 0; the others only run what was agreed on, and threads
  // that wake often disturb the job.
  bool exploring = contexts_.empty() || (!options_.learns() && handover_->leads());
  bool wants_pattern = contexts_.empty() && handover_->wants_pattern;
  CycleUse cycle_use = contexts_.empty() ? handover_->cycle_use.load() : CycleUse::kNever;
  for (const auto& context : contexts_) {
    if (finish_wanted_) return false;
    TakeFinished(context.get(), now, *job);
    ReadAhead(context.get(), now);
    CheckRuns(context.get(), now);
    const ContextExplorer* explorer = context->explorer.get();
    const agree::EpochLog::Epoch& newest = context->reporter.newest();
    exploring = exploring || newest.number < 2 ||
                (options_.learns() && newest.schedule.Explores()) ||
                (explorer != nullptr && explorer->exploring());
    wants_pattern = wants_pattern || (explorer != nullptr && explorer->wants_pattern());
    if (explorer != nullptr) cycle_use = std::max(cycle_use, explorer->rewards().UseOfCycles());
  }
  handover_->wants_pattern = wants_pattern;
  handover_->cycle_use = cycle_use;
  if (handover_->leads() && options_.learns() && !said_why_) SayWhyNothing(now);
  if (now - last_saved_ > kSaveInterval) {
    last_saved_ = now;
    Save();
  }
  return exploring;
}

void LearningWorker::TakeEntered(Context* context, double now) {
  std::vector<agree::EpochLog::Epoch> entered;
  std::optional<uint64_t> offer;
  {
    const MutexLock lock(&context->shared->mutex);
    entered.swap(context->shared->entered);
    if (context->shared->offer_ready && !context->offer_posted) offer = context->shared->offer;
  }
  if (offer.has_value() && !store_.away(now)) {
    context->offer_posted = store_
                                .Propose(context->shared->prefix + Format("o.{}", options_.rank),
                                         Format("{:x}", *offer), now)
                                .ok();
  }
  for (const agree::EpochLog::Epoch& epoch : entered) {
    context->reporter.Entered(epoch, now);
    context->runs.Entered(epoch);
    context->next_read_ahead = 0;
    context->read_ahead_pause = kFirstReadAhead;
  }
}

void LearningWorker::TakeFinished(Context* context, double now, const JobWatch& job) {
  const double patience = reward_file_ != nullptr ? kFilePatience : kPatience;
  std::vector<Reporter::Finished> finished = context->reporter.TakeFinished(now, patience);
  if (context->explorer != nullptr) {
    context->explorer->Poll({now, frozen_, calls_of_all_}, std::move(finished));
  } else if (context->orders != nullptr) {
    context->orders->Poll(now, job.order.has_value() ? &*job.order : nullptr, frozen_);
  } else if (context->turns != nullptr) {
    context->turns->Poll(now, policy_turn_, frozen_);
  } else if (Reports(options_.rank, options_.shape.ranks)) {
    for (const Reporter::Finished& one : finished) context->reporter.Post(one);
  }
}

void LearningWorker::Save() {
  if (!handover_->leads() || !options_.learns() || options_.learned.empty()) return;
  std::vector<LearnedContext> learned;
  for (const auto& context : contexts_) {
    if (!context->explorer->decided()) continue;
    learned.push_back({context->shared->collective, context->shared->band,
                       context->explorer->best(), context->explorer->Summary()});
  }
  if (learned.empty()) return;
  const Status saved =
      SaveLearned(options_.learned, options_.host.library, options_.shape, learned);
  if (!saved.ok()) handover_->log.Warn("what was learned could not be kept: " + saved.message());
}

// Reads the cells of the next epochs, so that entering them needs no call to the store.
void LearningWorker::ReadAhead(Context* context, double now) {
  if (now < context->next_read_ahead || store_.away(now)) return;
  const uint32_t next = std::max(context->reporter.newest().number + 1, 2u);
  // Back off: many ranks poll, and the next epoch may be far away.
  context->read_ahead_pause = std::min(2 * context->read_ahead_pause, kLongestReadAhead);
  context->next_read_ahead =
      now + (context->shared->known.Has(next) ? kFarReadAhead : context->read_ahead_pause);
  for (uint32_t epoch = next; epoch < next + kMostAhead; ++epoch) {
    if (context->shared->known.Has(epoch)) continue;
    const auto cell = store_.Read(agree::EpochLog::CellKey(context->shared->prefix, epoch), now);
    if (!cell.ok() || !cell.value()) return;
    context->shared->known.Put(epoch, *cell.value());
  }
}

void LearningWorker::TakeRuns() {
  LearningHandover::Run run;
  while (handover_->runs.Pop(&run)) {
    // A context that is not taken yet has no epoch that the run could belong to.
    if (run.context < contexts_.size()) contexts_[run.context]->runs.Add(run.sample);
  }
}

// Rank 0 posts its runs; the other ranks compare theirs.
void LearningWorker::CheckRuns(Context* context, double now) {
  std::deque<RunSamples::Epoch>& over = context->runs.over();
  while (!over.empty() && !store_.away(now) && stop_wanted_.empty()) {
    RunSamples::Epoch& epoch = over.front();
    const bool checked = epoch.number < kFirstChecked || epoch.number % kCheckedEvery == 0;
    if (checked && epoch.looks < kMostLooks) {
      const std::string key = context->shared->prefix + Format("d.{}", epoch.number);
      if (handover_->leads()) {
        if (!store_.Propose(key, RunSamplesText(epoch.samples), now).ok()) return;
      } else {
        if (now < epoch.next_look) return;
        const auto theirs = store_.Read(key, now);
        if (!theirs.ok()) return;
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

void LearningWorker::Differs(const Context& context, const RunDifference& difference) {
  if (difference.kind == RunDifference::Kind::kNone) return;
  const bool runs = difference.kind == RunDifference::Kind::kRuns;
  stop_wanted_ = Format("{}:{}, rank {}: {}", runs ? "runs" : "clocks", context.shared->Name(),
                        options_.rank, difference.text);
  next_stop_look_ = 0;
}

// Checks whether a rank of the communicator has reported a difference, and reports one found by
// this rank.
void LearningWorker::WatchStop(double now) {
  if (stopped_ || now < next_stop_look_ || store_.away(now)) return;
  next_stop_look_ = now + kStopInterval;
  const std::string key = options_.prefix + "stop";
  if (stop_wanted_.empty()) {
    const auto text = store_.Read(key, now);
    if (text.ok() && text.value()) TakeStop(*text.value());
    return;
  }
  const auto text = store_.Propose(key, stop_wanted_, now);
  if (text.ok()) TakeStop(text.value());
}

void LearningWorker::TakeStop(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string what = colon == std::string::npos ? text : text.substr(colon + 1);
  stopped_ = true;
  if (text.compare(0, 5, "runs:") == 0) {
    handover_->stop_text = "ranks have run one call differently: " + what;
    handover_->diverged.store(true, std::memory_order_release);
    return;
  }
  clocks_differ_ = true;
  handover_->log.Warn("ranks count calls differently: " + what +
                      "; nothing is tried any more in this communicator, on any rank");
}

void LearningWorker::WatchFreeze(double now, FreezeWatch* freeze) {
  if (!handover_->leads()) return;
  const bool wanted = clocks_differ_ || freeze->Frozen(options_.store, options_.freeze_file, now);
  if (wanted == frozen_) return;
  frozen_ = wanted;
  handover_->log.Info(
      wanted ? "frozen: nothing is tried until it is thawed, from the first epoch on that is "
               "not agreed yet"
             : "thawed: configurations are tried again");
}

void LearningWorker::WatchTurns(double now, JobWatch* job) {
  if (!handover_->leads() || !options_.compare || store_.away(now)) return;
  if (job->turns == nullptr) {
    job->turns = std::make_unique<agree::Turns>(options_.store, options_.turn_seconds);
  }
  // On an error the turn stays as it was.
  (void)job->turns->Look(now);
  policy_turn_ = job->turns->is_policy();
}

void LearningWorker::WatchOrders(double now, JobWatch* job) {
  if (!handover_->leads() || !options_.ordered || store_.away(now)) return;
  if (job->orders == nullptr) job->orders = std::make_unique<agree::OrderLog>(options_.store);
  // On an error the order stays as it was.
  (void)job->orders->Look(now);
  if (job->orders->number() == job->order_number) return;
  job->order_number = job->orders->number();
  job->order.reset();
  Result<policy::Order> order = policy::ParseOrder(job->orders->text());
  // What cannot be read, or is for another library, leaves everything to the library.
  if (order.ok() && order.value().rows.library == options_.host.library) {
    job->order = std::move(order).value();
  }
}

void LearningWorker::Finish(Deadline deadline) {
  TakeContexts();
  Save();
  finished_ = true;
  // Only rank 0 reads these cells, so they can be removed now. The other cells must stay until all
  // ranks are done, because another rank may still have calls to make (the root of a broadcast is
  // done before the others have begun).
  for (const auto& context : contexts_) {
    context->turns.reset();
    context->orders.reset();
    if (context->explorer == nullptr) continue;
    context->explorer->Leave(deadline);
    context->explorer.reset();
    options_.store->Forget(context->shared->prefix + "w.", deadline);
    options_.store->Forget(context->shared->prefix + "o.", deadline);
  }
  options_.store->Done(options_.prefix, static_cast<int>(options_.shape.ranks), deadline);
}

}  // namespace diapason::plugin
