#include "plugin/learning/learning.h"

#include <algorithm>
#include <exception>

#include "base/mutex_lock.h"
#include "base/text.h"
#include "plugin/learning/context_explorer.h"
#include "plugin/learning/gpu_memory.h"
#include "plugin/learning/learned_policy.h"
#include "plugin/learning/learning_thread.h"
#include "plugin/learning/reporter.h"
#include "plugin/profiler/event_mask.h"

namespace diapason::plugin {
namespace {

constexpr uint64_t kOpeningCalls = 8;
constexpr uint64_t kHoldCalls = 32;

int CheapestAlgorithm(const CostTable& table) { return CheapestPair(table, {}).algorithm; }

}  // namespace

std::string_view RewardSourceName(RewardSource source) {
  constexpr std::string_view kNames[kRewardSources] = {"step", "report", "file", "pattern", "gpu"};
  return kNames[static_cast<size_t>(source)];
}

LearningContext::LearningContext(Collective asked, int size_band, agree::CellStore* store,
                                 agree::EpochLog::Options options)
    : collective(asked),
      band(size_band),
      prefix(options.prefix),
      log(store, (options.known = &known, std::move(options))) {}

LearningContext::~LearningContext() = default;

Learning::Learning(LearningOptions options, const policy::Policy& policy, const HostLog& log,
                   journal::Journal* journal)
    : options_(std::move(options)),
      policy_(policy),
      log_(log),
      journal_(journal),
      groups_tick_(!options_.host.has_new_scheduler()),
      patient_(options_.calls_store, options_.patience,
               [this](const std::string& text) { log_.Warn(text); }),
      events_(GpuEvents::Make(options_.host.library)) {
  policy::DecisionTable::Options table_options;
  table_options.shape = options_.shape;
  table_ = policy::DecisionTable(policy_, table_options);
  lost_answer_.lost = true;
  wants_pattern_ = leads() && (options_.reward == "auto" || options_.reward == "pattern");
  EventMask::Instance().Want(EventMask::Need::kCalls);
}

Learning::~Learning() {
  EventMask::Instance().Unwant(EventMask::Need::kCalls);
  for (int i = tracking_; i > 0; --i) EventMask::Instance().Unwant(EventMask::Need::kRuns);
  for (int i = has_events() || dropped_events_ ? 0 : timing_; i > 0; --i)
    EventMask::Instance().Unwant(EventMask::Need::kTimes);
  // The end of the communicator did not wait for the learning thread: its GPU context may be
  // destroyed by now.
  if (late_) static_cast<void>(events_.release());
}

bool Learning::Learns(Collective collective) const {
  // Broadcasts have no events, so their calls cannot be counted.
  if (collective == Collective::kBroadcast && !groups_tick_) return false;
  // Collectives that only move data give the same result with every configuration; sums may not.
  const bool moves = collective == Collective::kBroadcast || collective == Collective::kAllGather;
  return moves || !options_.numerics_pinned;
}

void Learning::NewGroup(uint64_t group) noexcept {
  if (touched_count_ > 0) {
    const bool one_call = calls_ == 1;
    const auto settle = [this, one_call](LearningContext* context) {
      const uint32_t pending = context->pending;
      if (pending == 0) return;
      // A call counts once, however often the library asked about it.
      if (launched_) context->committed = context->committed + (one_call ? 1 : pending);
      context->pending = 0;
    };
    if (touched_count_ <= kMostTouched) {
      for (uint32_t i = 0; i < touched_count_; ++i) settle(touched_[i]);
    } else {
      for (auto& bands : contexts_) {
        for (LearningContext* context : bands) {
          if (context != nullptr) settle(context);
        }
      }
    }
    touched_count_ = 0;
  }
  launched_ = false;
  asked_ = false;
  calls_ = 0;
  group_ = group;
}

void Learning::SawCapture() noexcept {
  if (saw_capture_) return;
  saw_capture_ = true;
  // A timed kernel would permanently add a host node to every replay of the graph.
  EventMask::Instance().ForbidTimes();
}

uint64_t Learning::CallsMade(const LearningContext& context) const noexcept {
  const uint32_t pending = context.pending;
  if (!launched_ || pending == 0) return context.committed;
  return context.committed + (calls_ == 1 ? 1 : pending);
}

bool Learning::Lose(const std::string& why) noexcept {
  if (!lost_) {
    lost_ = true;
    slow_path_ = true;
    try {
      log_.Warn(
          "what the other ranks run can no longer be known (" + why +
          "). Going on could mix two algorithms in one call, which hangs or gives wrong results: "
          "this call fails instead");
    } catch (...) {
    }
  }
  return false;
}

bool Learning::Advance(LearningContext* context, uint64_t index, const CostTable& table) noexcept {
  try {
    if (!context->offer_made && table.Valid()) MakeOffer(context, table);
    const Result<agree::EpochLog::Span> span = context->log.At(index);
    if (!span.ok()) return Lose(span.status().message());
    context->log.Forget(context->committed);
    LearningContext::Ready& ready = context->ready;
    ready.config = span.value().config;
    ready.first = span.value().first;
    ready.length = span.value().end - span.value().first;
    ready.epoch = span.value().epoch;
    ready.counts = span.value().counts;
    TellEntered(context);
    const agree::EpochLog::Epoch& newest = context->log.newest();
    const bool settled = !newest.schedule.Explores() || ready.config == newest.schedule.incumbent;
    ready.reason = !ready.counts       ? Reason::kWarmUp
                   : span.value().held ? Reason::kHeld
                   : settled           ? Reason::kLearned
                                       : Reason::kTrying;
    return true;
  } catch (const std::exception& error) {
    return Lose(error.what());
  } catch (...) {
    return Lose("unknown exception");
  }
}

void Learning::TellEntered(LearningContext* context) {
  const agree::EpochLog::Epoch& newest = context->log.newest();
  if (context->told_epoch == static_cast<int64_t>(newest.number)) return;
  context->told_epoch = newest.number;
  // Runs are matched and timed only while the context explores. Decided here and not in Poll: a
  // short epoch may be over before the learning thread runs.
  const bool tracks = newest.number < 2 || newest.schedule.Explores();
  if (tracks != context->tracking) {
    context->tracking = tracks;
    tracking_ = tracking_ + (tracks ? 1 : -1);
    tracks ? EventMask::Instance().Want(EventMask::Need::kRuns)
           : EventMask::Instance().Unwant(EventMask::Need::kRuns);
  }
  if (newest.schedule.timed != context->timing) {
    context->timing = newest.schedule.timed;
    timing_ = timing_ + (context->timing ? 1 : -1);
    if (has_events()) {
      // GPU events need nothing from the library.
    } else if (context->timing) {
      EventMask::Instance().Want(EventMask::Need::kTimes);
    } else {
      EventMask::Instance().Unwant(EventMask::Need::kTimes);
    }
  }
  {
    const MutexLock lock(&context->mutex);
    context->entered.push_back(newest);
  }
  if (leads()) LearningThread::Instance().Wake();
}

// The answer for a call that does not explore: the best configuration as of the epoch of the
// context's next call, which is the same on every rank at the same call of the program.
void Learning::Freeze(LearningContext* context) {
  const uint64_t index = context->committed;
  if (context->frozen.length != 0 && index - context->frozen.first < context->frozen.length) return;
  const Result<agree::EpochLog::Span> span = context->log.At(index);
  if (!span.ok()) {
    Lose(span.status().message());
    return;
  }
  LearningContext::Ready& frozen = context->frozen;
  frozen.config = context->log.IncumbentAt(index);
  frozen.first = span.value().first;
  frozen.length = span.value().end - span.value().first;
  frozen.epoch = span.value().epoch;
  frozen.reason = Reason::kLearned;
  TellEntered(context);
}

const LearningContext::Ready* Learning::AskSlowPath(Collective collective, int band,
                                                    const CostTable& table) noexcept {
  try {
    if (diverged_.load(std::memory_order_acquire)) Lose(stop_text_);
    if (lost_) return &lost_answer_;
    if (!Learns(collective)) return nullptr;
    LearningContext*& context = contexts_[static_cast<size_t>(collective)][band];
    if (context == nullptr) context = MakeContext(collective, band);
    last_context_ = nullptr;
    if (slow_path_ || calls_ == 0) {
      Freeze(context);
      last_index_ = context->committed;
      return lost_ ? &lost_answer_ : &context->frozen;
    }
    const uint64_t index = context->committed + (calls_ > 1 ? context->pending : 0u);
    if (index - context->ready.first >= context->ready.length && !Advance(context, index, table)) {
      return &lost_answer_;
    }
    if (context->pending == 0) Touch(context);
    context->pending = context->pending + 1;
    asked_ = true;
    last_context_ = context;
    last_index_ = index;
    return &context->ready;
  } catch (const std::exception& error) {
    Lose(error.what());
  } catch (...) {
    Lose("unknown exception");
  }
  return &lost_answer_;
}

LearningContext* Learning::MakeContext(Collective collective, int band) {
  agree::EpochLog::Options options;
  options.prefix =
      options_.prefix + Format("%s.%d.", std::string(CollectiveName(collective)).c_str(), band);
  // Depends on the size band only, because ranks may be asked about different sizes first.
  const policy::DecisionTable::Entry* row = table_.Find({collective, BandLast(band), 1, 0});
  if (row != nullptr) options.incumbent = row->config();
  options.opening_calls = kOpeningCalls;
  options.hold_calls = kHoldCalls;
  auto context = std::make_unique<LearningContext>(collective, band, &patient_, options);
  context->reporter = std::make_unique<Reporter>(options_.store, options.prefix, options_.rank);
  if (leads()) context->explorer = std::make_unique<ContextExplorer>(this, context.get());
  LearningContext* raw = context.get();
  const MutexLock lock(&list_mutex_);
  list_.push_back(std::move(context));
  return raw;
}

// The pairs this rank can run; only pairs that all ranks offer are tried.
void Learning::MakeOffer(LearningContext* context, const CostTable& table) {
  context->offer_made = true;
  const std::optional<uint64_t> free = FreeGpuMemory(options_.host.library);
  const bool scarce = free.has_value() && *free < options_.memory;
  const int in_use = CheapestAlgorithm(table);
  uint64_t offer = 0;
  for (int a = 0; a < std::min(table.algorithms, kOfferedAlgorithms); ++a) {
    for (int p = 0; p < std::min(table.protocols, kOfferedProtocols); ++p) {
      if (!Available(table.At(a, p)) || !PairExists(context->collective, a, p)) continue;
      if (scarce && a != in_use) continue;
      offer |= uint64_t{1} << PairNumber(a, p);
    }
  }
  const MutexLock lock(&context->mutex);
  context->offer = offer;
  context->costs.assign(kPairs, -1.0f);
  for (int a = 0; a < std::min(table.algorithms, kOfferedAlgorithms); ++a) {
    for (int p = 0; p < std::min(table.protocols, kOfferedProtocols); ++p) {
      context->costs[PairNumber(a, p)] = table.At(a, p);
    }
  }
  context->offer_ready = true;
}

void Learning::RecordActual(LearningContext* context, const Config& asked,
                            const RunSample& run) noexcept {
  if (context == nullptr) return;
  // Replays of captured calls may advance the library's sequence numbers at different times on
  // different ranks.
  if (!EventMask::Instance().TimesForbidden() &&
      KeepsSample(run.index, run.index - context->ready.first)) {
    runs_.Push({context, run});  // a full ring only loses a sample
  }
  const int algorithm = run.algorithm;
  const int protocol = run.protocol;
  const int channels = run.channels;
  if (algorithm < 0 || algorithm >= kOfferedAlgorithms || protocol < 0 ||
      protocol >= kOfferedProtocols)
    return;
  if (asked.channels == 0 && channels > 0) context->ran_channels[algorithm][protocol] = channels;
  if (asked.IsDefault()) {
    context->default_algorithm = algorithm;
    context->default_protocol = protocol;
  }
}

void Learning::RecordTime(LearningContext* context, uint64_t index, double seconds) noexcept {
  samples_.Push({context, index, seconds});  // a full ring only loses a sample
}

void Learning::BeginTiming(void* stream) noexcept {
  timing_pair_ = -1;
  LearningContext* context = last_context_;
  // Only if the time clearly belongs to one call: one call, one kernel, not captured.
  if (events_ == nullptr || captured_ || calls_ != 1 || !asked_ || context == nullptr ||
      !context->timing || !context->ready.counts || timed_group_ == group_) {
    return;
  }
  timed_group_ = group_;
  timing_launch_ = {context, last_index_, events_->Begin(stream), 0};
  timing_pair_ = timing_launch_.pair;
  timing_stream_ = stream;
}

void Learning::EndTiming() noexcept {
  const int pair = timing_pair_;
  timing_pair_ = -1;
  if (events_->End(pair, timing_stream_) && !launches_.Push(timing_launch_)) events_->Discard(pair);
}

}  // namespace diapason::plugin
