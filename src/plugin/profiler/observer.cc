#include "plugin/profiler/observer.h"

#include <atomic>

#include "base/clock.h"
#include "base/settings.h"
#include "plugin/abi/host.h"
#include "plugin/profiler/event_handle.h"
#include "plugin/profiler/event_mask.h"
#include "plugin/profiler/event_names.h"
#include "plugin/profiler/event_pool.h"
#include "plugin/profiler/observer_table.h"
#include "plugin/profiler/second_profiler.h"

namespace diapason::plugin {
namespace {

using Visit = ObserverTable::Visit;

constexpr int kFirstApiWithStamps = 4;
constexpr int kFirstApiWithCalls = 5;
constexpr int kFinalizeLimitMs = 1000;
constexpr uint64_t kLongestRunNs = 60'000'000'000;

// The library keeps the stamps of each channel in a ring of this many pieces of work. If its proxy
// thread falls behind by more, it reads the stamps of later work without noticing.
//
// So a run is accepted at once only if at most this much work can have been enqueued since. The
// others stay uncertain until a later run is accepted: if a run's stamps were those of work 64 or
// more pieces later, they would be later than all stamps in between.
constexpr uint64_t kRing = 64;
// Without call events, and for replays, work is counted only after it was enqueued.
constexpr uint64_t kRingWithoutCalls = 32;
constexpr int kDoubtSteps = 1024;

constinit ObserverCountsOf<std::atomic<uint64_t>> g_counts;
void Count(std::atomic<uint64_t>* counter) { counter->fetch_add(1, std::memory_order_relaxed); }

constexpr CommObserverSource kNoObservers{
    [](const ProfilerInit& /*init*/) noexcept -> CommObserver* { return nullptr; },
    [](CommObserver* /*comm_observer*/) noexcept {}};
constinit std::atomic<const CommObserverSource*> g_comm_observers{&kNoObservers};

// For a communicator that only a second profiler observes.
class Nobody final : public CommObserver {
 public:
  void Called(const CallSeen& /*call*/) noexcept override {}
  void Launched(uint64_t /*group*/, void* /*stream*/) noexcept override {}
  void LaunchEnded() noexcept override {}
  uint64_t RecordActual(const RunSeen& /*run*/) noexcept override { return 0; }
  void Timed(uint64_t /*tag*/, const GpuSpan& /*span*/) noexcept override {}
};
constinit Nobody g_nobody;

constinit std::atomic<uint64_t> g_groups{0};

// 0: not a group of this process.
uint64_t GroupFrom(void* parent) noexcept {
  uint64_t number = 0;
  return ReadHandle(parent, HandleKind::kApiGroup, &number) ? number : 0;
}

// A context that names no communicator, so that every code path can make a Visit.
constexpr uint64_t kNoContext = 0;

uint64_t ContextFrom(void* context) noexcept {
  uint64_t payload = kNoContext;
  if (context != nullptr && !ReadHandle(context, HandleKind::kContext, &payload)) {
    Count(&g_counts.foreign);
  }
  return payload;
}

// The handle of a call holds the amount of work before its group, in 32 bits: no event is that
// late.
constexpr int kWorkBits = 32;
uint64_t Widen(uint64_t low, uint64_t now) {
  constexpr uint64_t kMask = (uint64_t{1} << kWorkBits) - 1;
  return now - ((now - low) & kMask);
}

void Tell(const Visit& communicator, const FinishedRun& run) {
  const GpuClock& clock = communicator->clock;
  const uint64_t length = clock.Nanoseconds(run.stop - run.start);
  if (length > kLongestRunNs) return Count(&g_counts.bad_stamps);
  const uint64_t start = clock.Nanoseconds(run.start);
  Count(&g_counts.timed);
  communicator->comm_observer->Timed(run.tag, {start, start + length});
}

// An accepted run settles the uncertain older ones, one after the other.
void SettleDoubts(const Visit& communicator, uint64_t number, FinishedRun believed) {
  if (!communicator->doubts.exchange(false, std::memory_order_relaxed)) return;
  EventPool* pool = EventPool::Instance();
  FinishedRun older;
  for (int steps = kDoubtSteps;
       pool->TakeDoubtfulBefore(&number, believed.context, &steps, &older);) {
    const bool true_stamps = older.start <= believed.start && older.stop <= believed.stop &&
                             believed.works_known - older.works_before <= kRing;
    if (!true_stamps) {
      Count(&g_counts.overrun);
      continue;
    }
    Tell(communicator, older);
    believed = older;
  }
}

void Finish(uint64_t number, const FinishedRun& run) {
  const Visit communicator(run.context);
  if (!communicator) return Count(&g_counts.late);
  if (!run.sane) return Count(&g_counts.bad_stamps);
  const uint64_t later = communicator->works.load(std::memory_order_relaxed) - run.works_before;
  const uint64_t ring =
      communicator->api >= kFirstApiWithCalls && !run.untold ? kRing : kRingWithoutCalls;
  if (later > ring) {
    EventPool::Instance()->KeepInDoubt(number);
    communicator->doubts.store(true, std::memory_order_relaxed);
    return;
  }
  Tell(communicator, run);
  SettleDoubts(communicator, number, run);
}

Library LibraryOf(const ProfilerInit& init) {
  return DetectHost(init.logger, Settings::Read(ProcessEnvironment())).library;
}

}  // namespace

void* ProfilerObserver::Create(const ProfilerInit& init) noexcept {
  const CommObserverSource& comm_observers = *g_comm_observers.load();
  Library library = Library::kNccl;
  try {
    library = LibraryOf(init);
  } catch (...) {  // no memory: nothing is observed
    return nullptr;
  }
  CommObserver* comm_observer = comm_observers.attach(init);
  const SecondProfiler::Started second = SecondProfiler::Start(init);
  if (comm_observer == nullptr && !second.started) return nullptr;
  Observed* slot = ObserverTable::Claim();
  if (slot == nullptr) {
    if (second.started) SecondProfiler::Finish(second.context);
    if (comm_observer != nullptr) comm_observers.detach(comm_observer);
    return nullptr;
  }
  slot->comm_observer = comm_observer != nullptr ? comm_observer : &g_nobody;
  slot->has_second = second.started;
  slot->second_context = second.context;
  slot->mask = init.mask;
  slot->api = init.api;
  slot->ranks = init.ranks;
  slot->clock.Reset(library);
  slot->works.store(0, std::memory_order_relaxed);
  slot->works_before_group.store(0, std::memory_order_relaxed);
  slot->launched.store(true, std::memory_order_relaxed);
  slot->doubts.store(false, std::memory_order_relaxed);
  const uint64_t context = ObserverTable::GoLive(slot);
  EventMask::Instance().Attach(init.mask, init.api);
  return MakeHandle(HandleKind::kContext, context);
}

void ProfilerObserver::Finalize(void* context) noexcept {
  Observed* slot = nullptr;
  if (context == nullptr || !ObserverTable::Close(ContextFrom(context), &slot)) return;
  EventMask::Instance().Detach(slot->mask);
  if (!ObserverTable::WaitUntilEmpty(slot, kFinalizeLimitMs)) {
    return Count(&g_counts.stuck);  // the slot is lost, and the observer stays alive
  }
  if (slot->has_second) SecondProfiler::Finish(slot->second_context);
  if (slot->comm_observer != &g_nobody) g_comm_observers.load()->detach(slot->comm_observer);
  ObserverTable::Free(slot);
}

void* ProfilerObserver::StartGroupApi() noexcept {
  uint64_t number = 0;
  // 0 means no group.
  while ((number & kHandlePayloadMask) == 0) {
    number = g_groups.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  return MakeHandle(HandleKind::kApiGroup, number);
}

void* ProfilerObserver::StartCollApi(void* context, void* parent, CallSeen call,
                                     const Elements& elements) noexcept {
  const Visit communicator(ContextFrom(context));
  if (!communicator) return nullptr;
  call.group = GroupFrom(parent);
  call.bytes =
      BytesAsAsked(call.collective, elements.count, elements.type_bytes, communicator->ranks);
  communicator->comm_observer->Called(call);
  if (call.captured) return MakeHandle(HandleKind::kCapturedCall, 0);
  uint64_t before = communicator->works.fetch_add(1, std::memory_order_relaxed);
  // The library sorts the calls of a group before it launches them: any of them may be the first.
  if (communicator->launched.exchange(false, std::memory_order_relaxed)) {
    communicator->works_before_group.store(before, std::memory_order_relaxed);
  } else {
    before = communicator->works_before_group.load(std::memory_order_relaxed);
  }
  return MakeHandle(HandleKind::kCall, before & ((uint64_t{1} << kWorkBits) - 1));
}

void* ProfilerObserver::StartKernelLaunch(void* context, void* parent, void* stream) noexcept {
  const uint64_t payload = ContextFrom(context);
  const Visit communicator(payload);
  if (!communicator) return nullptr;
  communicator->launched.store(true, std::memory_order_relaxed);
  communicator->comm_observer->Launched(GroupFrom(parent), stream);
  return MakeHandle(HandleKind::kLaunch, payload);
}

void ProfilerObserver::StopKernelLaunch(void* handle) noexcept {
  uint64_t payload = kNoContext;
  if (!ReadHandle(handle, HandleKind::kLaunch, &payload)) return;
  const Visit communicator(payload);
  if (communicator) communicator->comm_observer->LaunchEnded();
}

void* ProfilerObserver::StartGroup(void* context) noexcept {
  const Visit communicator(ContextFrom(context));
  if (!communicator) return nullptr;
  communicator->works_before_group.store(communicator->works.load(std::memory_order_relaxed),
                                         std::memory_order_relaxed);
  return MakeHandle(HandleKind::kGroup, 0);
}

void ProfilerObserver::StartP2p(void* context) noexcept {
  const Visit communicator(ContextFrom(context));
  if (communicator) communicator->works.fetch_add(1, std::memory_order_relaxed);
}

void* ProfilerObserver::StartColl(void* context, void* parent, RunSeen run,
                                  const Elements& elements) noexcept {
  const uint64_t token = ContextFrom(context);
  const Visit communicator(token);
  if (!communicator) return nullptr;
  run.bytes =
      BytesAsAsked(run.collective, elements.count, elements.type_bytes, communicator->ranks);
  uint64_t payload = 0;
  run.replayed = ReadHandle(parent, HandleKind::kCapturedCall, &payload);

  EventPool::NewRun entry;
  entry.untold = !ReadHandle(parent, HandleKind::kCall, &payload);
  if (entry.untold) {
    entry.works_before = communicator->works.fetch_add(1, std::memory_order_relaxed);
    if (ReadHandle(parent, HandleKind::kGroup, &payload)) {
      entry.works_before = communicator->works_before_group.load(std::memory_order_relaxed);
    }
  } else {
    entry.works_before = Widen(payload, communicator->works.load(std::memory_order_relaxed));
  }
  communicator->launched.store(true, std::memory_order_relaxed);

  entry.tag = communicator->comm_observer->RecordActual(run);
  if (entry.tag == 0 || communicator->api < kFirstApiWithStamps) return nullptr;
  if (run.channels <= 0 || run.channels > EventPool::kMostChannels) {
    Count(&g_counts.untimeable);
    return nullptr;
  }
  EventPool* pool = EventPool::Instance();
  if (pool == nullptr) return nullptr;
  entry.context = token;
  entry.channels = run.channels;
  entry.works_known = communicator->works.load(std::memory_order_relaxed);
  return MakeHandle(HandleKind::kRun, pool->Open(entry));
}

void* ProfilerObserver::StartKernelChannel(void* parent, int channel, uint64_t stamp) noexcept {
  uint64_t run = 0;
  if (!ReadHandle(parent, HandleKind::kRun, &run)) {
    if (parent != nullptr && !IsOwnHandle(parent)) Count(&g_counts.foreign);
    return nullptr;
  }
  EventPool* pool = EventPool::Instance();
  if (pool == nullptr) return nullptr;
  switch (pool->StartChannel(run, channel, stamp)) {
    case EventPool::Outcome::kNoted:
      return MakeHandle(HandleKind::kChannel, run | static_cast<uint64_t>(channel)
                                                        << EventPool::kRunBits);
    case EventPool::Outcome::kLate:
      Count(&g_counts.late);
      return nullptr;
    case EventPool::Outcome::kRepeated:
    case EventPool::Outcome::kImpossible:
      return nullptr;
  }
  return nullptr;
}

void ProfilerObserver::StopKernelChannel(void* handle, uint64_t stamp) noexcept {
  uint64_t payload = 0;
  if (!ReadHandle(handle, HandleKind::kChannel, &payload)) return;
  const uint64_t run = payload & ((uint64_t{1} << EventPool::kRunBits) - 1);
  const auto channel = static_cast<int>(payload >> EventPool::kRunBits);
  EventPool* pool = EventPool::Instance();
  bool finished = false;
  FinishedRun result;
  if (pool == nullptr) return;
  if (pool->StopChannel(run, channel, stamp, &finished, &result) == EventPool::Outcome::kLate) {
    return Count(&g_counts.late);
  }
  if (!finished) return;
  {
    const Visit communicator(result.context);
    if (communicator && communicator->clock.Learning()) {
      communicator->clock.Observe(stamp, SteadyNs());
    }
  }
  Finish(run, result);
}

void ProfilerObserver::UseCommObservers(const CommObserverSource* source) noexcept {
  g_comm_observers.store(source != nullptr ? source : &kNoObservers);
}

ObserverCounts ReadObserverCounts() noexcept {
  return {g_counts.timed,   g_counts.late,       g_counts.foreign, g_counts.bad_stamps,
          g_counts.overrun, g_counts.untimeable, g_counts.stuck};
}

}  // namespace diapason::plugin
