#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace diapason::plugin {

// Which events the library is asked for. All communicators of the process share one mask word,
// which the library reads at every call. While no events are wanted it is 0, and the library's only
// cost is to read it.
//
// Want and Unwant take no lock and may be called inside a decision or an event.
class EventMask {
 public:
  enum class Need {
    kCalls,  // CollApi and KernelLaunch, plus GroupApi (API v5 and later)
    kRuns,   // Coll
    kTimes,  // KernelCh, plus Coll (API v4 and later: earlier versions have no time stamps)
  };

  static EventMask& Instance() noexcept;

  // Registers the library's mask word, once per communicator, with the library's API version. It is
  // written to until the last communicator with this word is detached, and then set to 0.
  void Attach(int* word, int api) noexcept;
  void Detach(int* word) noexcept;

  // Every Want needs a matching Unwant.
  void Want(Need need) noexcept;
  void Unwant(Need need) noexcept;

  // What a second profiler wants, as bits of the mask: replaces what it wanted before. It is not
  // subject to ForbidTimes, and not part of Value.
  void WantForSecond(int bits) noexcept;

  // KernelCh stays off from now on, even if it is wanted: it would leave a host node in a captured
  // graph for the graph's whole life. The library reads the mask before it reports that a call is
  // captured, so the first captured call may still have the event.
  void ForbidTimes() noexcept;
  bool TimesForbidden() const noexcept;

  // What the plugin itself wants of a library of this API version.
  int Value(int api) const noexcept;

 private:
  struct Word {
    std::atomic<int*> address{nullptr};
    std::atomic<int> api{0};
    int communicators = 0;  // guarded by the lock
  };
  void Publish() noexcept;

  // One 20-bit counter per need, and the flag that forbids times, in one atomic word, so that the
  // published mask is always a consistent state.
  std::atomic<uint64_t> wants_{0};
  std::atomic<int> second_{0};
  // One per copy of the library in the process: a framework may bundle its own.
  std::array<Word, 4> words_;
};

// Whether KernelCh can be used with `ranks` ranks on this host. Its first use maps large pools in
// shared memory, and libraries crash if these do not fit.
bool TimesPossible(int64_t ranks, const char* shared_memory = "/dev/shm") noexcept;

}  // namespace diapason::plugin
