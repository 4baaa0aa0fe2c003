#include "plugin/learning/learning.h"

#include <algorithm>
#include <exception>

#include "base/clock.h"
#include "base/mutex_lock.h"
#include "base/text.h"
#include "plugin/profiler/event_mask.h"

namespace diapason::plugin {
namespace {

constexpr uint64_t kOpeningCalls = 8;
constexpr uint64_t kHoldCalls = 32;

void SetWanted(EventMask::Need need, bool wanted) {
  wanted ? EventMask::Instance().Want(need) : EventMask::Instance().Unwant(need);
}

}  // namespace

LearningContext::LearningContext(Collective asked, int size_band, agree::CellStore* store,
                                 agree::EpochLog::Options options)
    : ContextHandover(asked, size_band, options.prefix),
      log(store, (options.known = &known, std::move(options))) {}

Learning::Learning(LearningOptions options, const policy::Policy& policy, const HostLog& log,
                   journal::Journal* journal)
    : handover_(std::move(options), policy, log, journal),
      timed_by_library_(!has_events()),
      groups_tick_(!handover_.options.host.has_new_scheduler()),
      limits_calls_(handover_.options.is_2_31),
      patient_(handover_.options.calls_store, handover_.options.patience,
               [this](const std::string& text) { handover_.log.Warn(text); }) {
  policy::DecisionTable::Options table_options;
  table_options.shape = handover_.options.shape;
  table_ = policy::DecisionTable(handover_.policy, table_options);
  lost_answer_.lost = true;
  EventMask::Instance().Want(EventMask::Need::kCalls);
}

Learning::~Learning() {
  EventMask::Instance().Unwant(EventMask::Need::kCalls);
  for (int i = tracking_; i > 0; --i) EventMask::Instance().Unwant(EventMask::Need::kRuns);
  for (int i = timed_by_library_ ? timing_ : 0; i > 0; --i)
    EventMask::Instance().Unwant(EventMask::Need::kTimes);
}

bool Learning::Learns(Collective collective) const {
  // Broadcasts have no events, so their calls cannot be counted.
  if (collective == Collective::kBroadcast && !groups_tick_) return false;
  // Collectives that only move data give the same result with every configuration; sums may not.
  const bool moves = collective == Collective::kBroadcast || collective == Collective::kAllGather;
  return moves || !handover_.options.numerics_pinned;
}

void Learning::NewGroup(uint64_t group) noexcept {
  if (touched_count_ > 0) {
    const bool one_call = handover_.calls == 1;
    const auto settle = [this, one_call](LearningContext* context) {
      const uint32_t pending = context->pending;
      if (pending == 0) return;
      // A call counts once, however often the library asked about it.
      if (handover_.launched) context->committed = context->committed + (one_call ? 1 : pending);
      context->pending = 0;
    };
    if (touched_count_ <= kMostTouched) {
      for (uint32_t i = 0; i < touched_count_; ++i) settle(touched_[i]);
    } else {
      for (auto& bands : contexts_) {
        for (const auto& context : bands) {
          if (context != nullptr) settle(context.get());
        }
      }
    }
    touched_count_ = 0;
  }
  ++groups_seen_;
  handover_.launched = false;
  asked_ = false;
  handover_.calls = 0;
  group_ = group;
}

void Learning::SawCapture() noexcept {
  if (saw_capture_) return;
  saw_capture_ = true;
  // A timed kernel would permanently add a host node to every replay of the graph.
  EventMask::Instance().ForbidTimes();
}

bool Learning::Lose(const std::string& why) noexcept {
  if (!lost_) {
    lost_ = true;
    slow_path_ = true;
    try {
      handover_.log.Warn(
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
    ready.turn = TurnOf(span.value().by_policy);
    TellEntered(context);
    const agree::EpochLog::Epoch& newest = context->log.newest();
    const bool explores = handover_.options.ordered || newest.schedule.Explores();
    const bool settled = !explores || ready.config == newest.schedule.incumbent;
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
  // Runs are matched and timed only while the context explores. Decided here and not in the
  // background: a short epoch may be over before the learning thread runs.
  // While turns are followed, all are treated alike.
  const bool tracks =
      !handover_.options.learns() || newest.number < 2 || newest.schedule.Explores();
  if (tracks != context->tracking) {
    context->tracking = tracks;
    tracking_ = tracking_ + (tracks ? 1 : -1);
    SetWanted(EventMask::Need::kRuns, tracks);
  }
  const CycleUse use = handover_.cycle_use;
  const bool cycles =
      use == CycleUse::kAlways || (use == CycleUse::kWhileTrying && newest.schedule.Explores());
  const bool times = newest.schedule.timed || cycles;
  if (times != context->timing) {
    context->timing = times;
    timing_ = timing_ + (times ? 1 : -1);
    if (timed_by_library_) SetWanted(EventMask::Need::kTimes, times);
  }
  {
    const MutexLock lock(&context->mutex);
    context->entered.push_back(newest);
  }
  if (handover_.leads()) handover_.options.waker->Wake();
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
  frozen.turn = TurnOf(false);
  TellEntered(context);
}

const LearningContext::Ready* Learning::AskSlowPath(Collective collective, int band,
                                                    const CostTable& table) noexcept {
  try {
    if (handover_.diverged.load(std::memory_order_acquire)) Lose(handover_.stop_text);
    if (lost_) return &lost_answer_;
    if (!Learns(collective)) return nullptr;
    const std::unique_ptr<LearningContext>& context =
        contexts_[static_cast<size_t>(collective)][band];
    if (context == nullptr) MakeContext(collective, band);
    last_context_ = nullptr;
    if (!slow_path_ && handover_.calls > 0) return Count(context.get(), table);
    Freeze(context.get());
    last_index_ = context->committed;
    return lost_ ? &lost_answer_ : &context->frozen;
  } catch (const std::exception& error) {
    Lose(error.what());
  } catch (...) {
    Lose("unknown exception");
  }
  return &lost_answer_;
}

void Learning::MakeContext(Collective collective, int band) {
  agree::EpochLog::Options options;
  options.prefix =
      handover_.options.prefix + Format("{}.{}.", std::string(CollectiveName(collective)), band);
  // Depends on the size band only, because ranks may be asked about different sizes first.
  const policy::DecisionTable::Entry* row = table_.Find({collective, BandLast(band), 1, 0});
  if (row != nullptr && handover_.options.learns()) options.incumbent = row->config();
  options.opening_calls = kOpeningCalls;
  options.hold_calls = kHoldCalls;
  auto context = std::make_unique<LearningContext>(collective, band, &patient_, options);
  handover_.Add(context.get());
  contexts_[static_cast<size_t>(collective)][band] = std::move(context);
}

namespace {

uint64_t PairsOf(const CostTable& table) noexcept {
  uint64_t pairs = 0;
  for (int a = 0; a < std::min(table.algorithms, kOfferedAlgorithms); ++a) {
    for (int p = 0; p < std::min(table.protocols, kOfferedProtocols); ++p) {
      if (Available(table.At(a, p))) pairs |= uint64_t{1} << PairNumber(a, p);
    }
  }
  return pairs;
}

}  // namespace

bool Learning::IsLimited(LearningContext* context, const CostTable& table) noexcept {
  const uint64_t pairs = PairsOf(table);
  if ((context->widest & ~pairs) != 0) return true;
  context->widest = pairs;
  return false;
}

// The pairs this rank can run; only pairs that all ranks offer are tried.
void Learning::MakeOffer(LearningContext* context, const CostTable& table) {
  context->offer_made = true;
  const std::optional<uint64_t> free = FreeGpuMemory(handover_.options.host.library);
  const bool scarce = free.has_value() && *free < handover_.options.memory;
  const int in_use = CheapestPair(handover_.options.rules(), table, {}).algorithm;
  uint64_t offer = 0;
  std::vector<float> costs(kPairs, -1.0f);
  for (int a = 0; a < std::min(table.algorithms, kOfferedAlgorithms); ++a) {
    for (int p = 0; p < std::min(table.protocols, kOfferedProtocols); ++p) {
      costs[PairNumber(a, p)] = table.At(a, p);
      if (!Available(table.At(a, p)) || !PairExists(context->collective, a, p)) continue;
      if (scarce && a != in_use) continue;
      offer |= uint64_t{1} << PairNumber(a, p);
    }
  }
  const MutexLock lock(&context->mutex);
  context->offer = offer;
  context->costs = std::move(costs);
  context->offer_ready = true;
}

void Learning::RecordActual(LearningContext* context, const Config& asked,
                            const RunSample& run) noexcept {
  if (context == nullptr) return;
  // Replays of captured calls may advance the library's sequence numbers at different times on
  // different ranks.
  if (!EventMask::Instance().TimesForbidden() &&
      KeepsSample(run.index, run.index - context->ready.first)) {
    handover_.runs.Push({context->number, run});
  }
  if (!CanBeOffered(run.algorithm, run.protocol)) return;
  if (asked.channels == 0 && run.channels > 0) {
    context->ran_channels[run.algorithm][run.protocol] = run.channels;
  }
  if (asked.IsDefault()) {
    context->default_algorithm = run.algorithm;
    context->default_protocol = run.protocol;
  }
}

void Learning::BeginTiming(void* stream) noexcept {
  timing_launch_.pair = -1;
  const LearningContext* context = last_context_;
  // Only if the time clearly belongs to one call: one call, one kernel, not captured.
  if (!has_events() || captured_ || handover_.calls != 1 || !asked_ || context == nullptr ||
      !context->timing || timed_group_ == group_) {
    return;
  }
  timed_group_ = group_;
  if (handover_.cycle_use != CycleUse::kNever) {
    timing_begun_ = SteadySeconds();
    EndCycle(*context);
  }
  if (!context->ready.counts) return;
  timing_launch_ = {context->number, last_index_, handover_.events->Begin(stream), 0};
  timing_stream_ = stream;
}

void Learning::EndCycle(const LearningContext& context) noexcept {
  const LearningHandover::Launch call = cycle_launch_;
  cycle_launch_.pair = -1;
  if (call.pair < 0 || call.context != context.number || call.index + 1 != last_index_ ||
      cycle_groups_ + 1 != groups_seen_) {
    return;
  }
  handover_.cycles.Push(
      {call.context, call.index, timing_begun_ - cycle_begun_, handover_.events->Ended(call.pair)});
}

void Learning::EndTiming() noexcept {
  const LearningHandover::Launch launch = timing_launch_;
  timing_launch_.pair = -1;
  if (!handover_.events->End(launch.pair, timing_stream_)) return;
  if (!handover_.launches.Push(launch)) {
    handover_.events->Discard(launch.pair);
    return;
  }
  if (handover_.cycle_use == CycleUse::kNever) return;
  cycle_launch_ = launch;
  cycle_begun_ = timing_begun_;
  cycle_groups_ = groups_seen_;
}

}  // namespace diapason::plugin
