#include "plugin/profiler/event_mask.h"

#include <sys/statvfs.h>

#include <algorithm>

#include "base/mutex_lock.h"
#include "plugin/abi/profiler_abi.h"

namespace diapason::plugin {
namespace {

constexpr int kFirstApiWithStamps = 4;
constexpr int kFirstApiWithCalls = 5;

constexpr int kCounterBits = 20;
constexpr uint64_t kCounterMask = (uint64_t{1} << kCounterBits) - 1;
constexpr uint64_t kTimesForbidden = uint64_t{1} << (3 * kCounterBits);

constexpr int64_t kMiB = 1024 * 1024;
constexpr int64_t kPoolBytesPerRank = 64 * kMiB;
constexpr int64_t kLeastFreeBytes = 128 * kMiB;
constexpr int64_t kMostRanksOfAHost = 16;

constinit EventMask g_mask;
// Taken while communicators are created and destroyed; no other lock is taken while it is held.
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) void Register() {
  pthread_atfork([] { pthread_mutex_lock(&g_lock); }, [] { pthread_mutex_unlock(&g_lock); },
                 [] { pthread_mutex_unlock(&g_lock); });
}

int ShiftOf(EventMask::Need need) { return static_cast<int>(need) * kCounterBits; }
bool Wanted(uint64_t wants, EventMask::Need need) {
  return ((wants >> ShiftOf(need)) & kCounterMask) != 0;
}

int ValueOf(uint64_t wants, int api) {
  uint64_t value = 0;
  if (Wanted(wants, EventMask::Need::kCalls) && api >= kFirstApiWithCalls) {
    value |= abi::kEventCollApi | abi::kEventKernelLaunch;
  }
  // Before 2.28 the library sends a Coll only inside a Group.
  uint64_t runs = abi::kEventColl;
  if (api < kFirstApiWithCalls) runs |= abi::kEventGroup;
  if (Wanted(wants, EventMask::Need::kRuns)) value |= runs;
  if (Wanted(wants, EventMask::Need::kTimes) && api >= kFirstApiWithStamps &&
      (wants & kTimesForbidden) == 0) {
    value |= runs | abi::kEventKernelCh;
  }
  return static_cast<int>(value);
}

// The library reads it with an atomic load of its own.
void Store(int* word, int value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }

}  // namespace

EventMask& EventMask::Instance() noexcept { return g_mask; }

void EventMask::Attach(int* word, int api) noexcept {
  if (word == nullptr) return;
  {
    const MutexLock lock(&g_lock);
    Word* place = nullptr;
    for (Word& one : words_) {
      int* address = one.address.load(std::memory_order_relaxed);
      if (address == word) {
        place = &one;
        break;
      }
      if (address == nullptr && place == nullptr) place = &one;
    }
    if (place == nullptr) {  // more copies of the library than expected: this one gets no events
      Store(word, 0);
      return;
    }
    ++place->communicators;
    place->api.store(api, std::memory_order_relaxed);
    place->address.store(word, std::memory_order_seq_cst);
  }
  Publish();
}

void EventMask::Detach(int* word) noexcept {
  if (word == nullptr) return;
  const MutexLock lock(&g_lock);
  for (Word& one : words_) {
    if (one.address.load(std::memory_order_relaxed) != word) continue;
    if (--one.communicators > 0) return;
    one.address.store(nullptr, std::memory_order_seq_cst);
    Store(word, 0);
  }
}

void EventMask::Want(Need need) noexcept {
  uint64_t wants = wants_.load(std::memory_order_relaxed);
  do {
    if (((wants >> ShiftOf(need)) & kCounterMask) == kCounterMask) return;
  } while (!wants_.compare_exchange_weak(wants, wants + (uint64_t{1} << ShiftOf(need))));
  Publish();
}

void EventMask::Unwant(Need need) noexcept {
  uint64_t wants = wants_.load(std::memory_order_relaxed);
  do {
    if (!Wanted(wants, need)) return;
  } while (!wants_.compare_exchange_weak(wants, wants - (uint64_t{1} << ShiftOf(need))));
  Publish();
}

void EventMask::WantForSecond(int bits) noexcept {
  if (second_.exchange(bits) != bits) Publish();
}

void EventMask::ForbidTimes() noexcept {
  if (TimesForbidden()) return;
  wants_.fetch_or(kTimesForbidden);
  Publish();
}

bool EventMask::TimesForbidden() const noexcept {
  return (wants_.load(std::memory_order_relaxed) & kTimesForbidden) != 0;
}

int EventMask::Value(int api) const noexcept {
  return ValueOf(wants_.load(std::memory_order_relaxed), api);
}

// The last thread to store has seen the newest wants, because it looks again after storing.
void EventMask::Publish() noexcept {
  uint64_t wants = wants_.load();
  int second = second_.load();
  for (;;) {
    for (Word& one : words_) {
      int* address = one.address.load();
      if (address == nullptr) continue;
      Store(address, ValueOf(wants, one.api.load(std::memory_order_relaxed)) | second);
      if (one.address.load() != address) Store(address, 0);  // detached meanwhile
    }
    const uint64_t wants_now = wants_.load();
    const int second_now = second_.load();
    if (wants_now == wants && second_now == second) return;
    wants = wants_now;
    second = second_now;
  }
}

bool TimesPossible(int64_t ranks, const char* shared_memory) noexcept {
  struct statvfs space {};
  if (statvfs(shared_memory, &space) != 0) return false;
  const int64_t neighbours = std::clamp<int64_t>(ranks, 1, kMostRanksOfAHost);
  const int64_t needed = std::max(kLeastFreeBytes, neighbours * kPoolBytesPerRank);
  return static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize) >=
         static_cast<double>(needed);
}

}  // namespace diapason::plugin
