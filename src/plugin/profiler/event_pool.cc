#include "plugin/profiler/event_pool.h"

#include <bit>
#include <new>

namespace diapason::plugin {
namespace {

constexpr uint64_t kRunMask = (uint64_t{1} << EventPool::kRunBits) - 1;
constexpr auto kRelaxed = std::memory_order_relaxed;

void Lower(std::atomic<uint64_t>* value, uint64_t candidate) {
  uint64_t now = value->load(kRelaxed);
  while (candidate < now && !value->compare_exchange_weak(now, candidate, kRelaxed)) {
  }
}

void Raise(std::atomic<uint64_t>* value, uint64_t candidate) {
  uint64_t now = value->load(kRelaxed);
  while (candidate > now && !value->compare_exchange_weak(now, candidate, kRelaxed)) {
  }
}

}  // namespace

EventPool* EventPool::Instance() noexcept {
  static std::atomic<EventPool*> instance{nullptr};
  EventPool* pool = instance.load(std::memory_order_acquire);
  if (pool != nullptr) return pool;
  auto* made = new (std::nothrow) EventPool;
  if (made == nullptr) return nullptr;
  if (instance.compare_exchange_strong(pool, made, std::memory_order_acq_rel)) return made;
  delete made;  // another thread created it first
  return pool;
}

uint64_t EventPool::Open(const NewRun& run) noexcept {
  const uint64_t number = next_.fetch_add(1, kRelaxed) & kRunMask;
  Entry& entry = EntryOf(number);
  entry.state.store(State(number, kOpening));
  entry.context.store(run.context, kRelaxed);
  entry.tag.store(run.tag, kRelaxed);
  entry.start.store(UINT64_MAX, kRelaxed);
  entry.stop.store(0, kRelaxed);
  entry.works_before.store(run.works_before, kRelaxed);
  entry.works_known.store(run.works_known, kRelaxed);
  for (auto& bits : entry.started) bits.store(0, kRelaxed);
  for (auto& bits : entry.stopped) bits.store(0, kRelaxed);
  entry.channels.store(run.channels, kRelaxed);
  entry.untold.store(run.untold, kRelaxed);
  entry.odd.store(false, kRelaxed);
  entry.state.store(State(number, kOpen));
  return number;
}

bool EventPool::Overtaken(Entry* entry, uint64_t run) noexcept {
  const uint64_t now = entry->state.load() >> kPhaseBits;
  if (now == run) return false;
  entry->spoiled.store(now);
  return true;
}

EventPool::Outcome EventPool::StartChannel(uint64_t run, int channel, uint64_t stamp) noexcept {
  if (channel < 0 || channel >= kMostChannels) return Outcome::kImpossible;
  Entry& entry = EntryOf(run);
  if (entry.state.load() != State(run, kOpen)) return Outcome::kLate;
  const uint64_t bit = uint64_t{1} << (channel % 64);
  const size_t half = static_cast<size_t>(channel) / 64;
  const uint64_t before = entry.started[half].fetch_or(bit);
  if (stamp == 0) entry.odd.store(true, kRelaxed);
  if ((before & bit) == 0) Lower(&entry.start, stamp);
  if (Overtaken(&entry, run)) return Outcome::kLate;
  return (before & bit) == 0 ? Outcome::kNoted : Outcome::kRepeated;
}

EventPool::Outcome EventPool::StopChannel(uint64_t run, int channel, uint64_t stamp, bool* finished,
                                          FinishedRun* result) noexcept {
  *finished = false;
  if (channel < 0 || channel >= kMostChannels) return Outcome::kImpossible;
  Entry& entry = EntryOf(run);
  if (entry.state.load() != State(run, kOpen)) return Outcome::kLate;
  const uint64_t bit = uint64_t{1} << (channel % 64);
  const size_t half = static_cast<size_t>(channel) / 64;
  if ((entry.started[half].load() & bit) == 0) return Outcome::kImpossible;
  if (stamp == 0) entry.odd.store(true, kRelaxed);
  // The stamp is stored before the bit: a thread that sees all bits must see all stamps.
  if ((entry.stopped[half].load() & bit) == 0) Raise(&entry.stop, stamp);
  const uint64_t before = entry.stopped[half].fetch_or(bit);
  if (Overtaken(&entry, run)) return Outcome::kLate;
  if ((before & bit) != 0) return Outcome::kRepeated;
  const int stopped =
      std::popcount(entry.stopped[0].load()) + std::popcount(entry.stopped[1].load());
  if (stopped < entry.channels.load(kRelaxed)) return Outcome::kNoted;
  uint64_t open = State(run, kOpen);
  if (!entry.state.compare_exchange_strong(open, State(run, kDone))) return Outcome::kNoted;
  *result = Read(entry, run);
  *finished = !Overtaken(&entry, run);
  return Outcome::kNoted;
}

FinishedRun EventPool::Read(const Entry& entry, uint64_t run) noexcept {
  FinishedRun result;
  result.context = entry.context.load(kRelaxed);
  result.tag = entry.tag.load(kRelaxed);
  result.start = entry.start.load(kRelaxed);
  result.stop = entry.stop.load(kRelaxed);
  result.works_before = entry.works_before.load(kRelaxed);
  result.works_known = entry.works_known.load(kRelaxed);
  result.untold = entry.untold.load(kRelaxed);
  result.sane =
      !entry.odd.load(kRelaxed) && result.start <= result.stop && entry.spoiled.load() != run;
  return result;
}

void EventPool::KeepInDoubt(uint64_t run) noexcept {
  uint64_t done = State(run, kDone);
  EntryOf(run).state.compare_exchange_strong(done, State(run, kDoubtful));
}

bool EventPool::TakeDoubtfulBefore(uint64_t* run, uint64_t context, int* steps,
                                   FinishedRun* result) noexcept {
  for (; *steps > 0 && *run > kPlaces; --*steps) {
    --*run;
    Entry& entry = EntryOf(*run);
    uint64_t doubtful = State(*run, kDoubtful);
    if (entry.state.load() != doubtful) continue;
    if (entry.context.load(kRelaxed) != context) continue;
    if (!entry.state.compare_exchange_strong(doubtful, State(*run, kDone))) continue;
    *result = Read(entry, *run);
    if (entry.state.load() != State(*run, kDone)) continue;
    --*steps;
    return true;
  }
  return false;
}

}  // namespace diapason::plugin
