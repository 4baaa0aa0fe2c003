#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace diapason::plugin {

// Which events the library is asked for. There is one word for all communicators of the process;
// the library reads it at every call. While nobody wants anything it is 0, and the library's only
// cost is to see that.
//
// Want and Unwant take no lock and may be called inside a decision or an event.
class EventMask {
 public:
  enum class Need {
    kCalls,  // CollApi and KernelLaunch, and with them GroupApi (API v5 and later)
    kRuns,   // Coll
    kTimes,  // KernelCh, with them Coll (API v4 and later: before, they have no stamps)
  };

  static EventMask& Instance() noexcept;

  // The library's word, once per communicator, with the version the library speaks. Written to as
  // long as there is a communicator that came with it, then set to 0 and forgotten.
  void Attach(int* word, int api) noexcept;
  void Detach(int* word) noexcept;

  // Every Want has its Unwant.
  void Want(Need need) noexcept;
  void Unwant(Need need) noexcept;

  // KernelCh stays off from now on, whoever wants it. With it a captured graph keeps a host node
  // for its whole life. The library reads the word before it tells that a call is captured, so the
  // first captured call may still have it.
  void ForbidTimes() noexcept;
  bool TimesForbidden() const noexcept;

  // What the word of a library of this version is set to now.
  int Value(int api) const noexcept;

 private:
  struct Word {
    std::atomic<int*> address{nullptr};
    std::atomic<int> api{0};
    int communicators = 0;  // guarded by the lock
  };
  void Publish() noexcept;

  // Counters of 20 bits, one per need, and the flag that forbids times: one word, so that what is
  // published is always one moment's state.
  std::atomic<uint64_t> wants_{0};
  // One for every copy of the library in the process: a framework may carry its own.
  std::array<Word, 4> words_;
};

// Whether KernelCh can be used. Its first use maps large pools in shared memory, and libraries
// crash when they do not fit: `ranks` of them may be on this host.
bool TimesPossible(int64_t ranks, const char* shared_memory = "/dev/shm") noexcept;

}  // namespace diapason::plugin
