#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace diapason::plugin {

// A run whose time stamps have all arrived.
struct FinishedRun {
  uint64_t context = 0;  // as passed to Open
  uint64_t tag = 0;
  uint64_t start = 0;  // the first channel's, in the GPU's ticks
  uint64_t stop = 0;   // the last channel's
  uint64_t works_before = 0;
  uint64_t works_known = 0;
  bool untold = false;
  bool sane = false;  // no stamp is missing, and none precedes the start
};

// The runs whose time stamps have not all arrived: a ring of fixed size for the whole process. The
// newest runs overwrite the oldest; a late call for an overwritten run returns kLate and changes
// nothing.
//
// A run is identified by a 37-bit number: its slot and how often the slot was used before. Any
// thread may call any function; there are no locks.
class EventPool {
 public:
  static constexpr int kPlaceBits = 12;
  static constexpr uint32_t kPlaces = 1u << kPlaceBits;
  static constexpr int kRunBits = 37;
  static constexpr int kMostChannels = 128;

  // The pool of the process, created at first use and never destroyed; nullptr: no memory.
  static EventPool* Instance() noexcept;

  EventPool() = default;
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  struct NewRun {
    uint64_t context = 0;
    uint64_t tag = 0;
    int channels = 0;  // number of channels that will report, 1 to kMostChannels
    // Bounds on the pieces of work that the communicator enqueued on the GPU: at least this many
    // before this one; at most this many including it and all that were known then.
    uint64_t works_before = 0;
    uint64_t works_known = 0;
    bool untold = false;  // no call event preceded it
  };
  uint64_t Open(const NewRun& run) noexcept;

  enum class Outcome {
    kNoted,
    kLate,       // the run was overwritten, or is already complete
    kRepeated,   // this channel has already reported
    kImpossible  // no such channel, or it stops before it has started
  };
  Outcome StartChannel(uint64_t run, int channel, uint64_t stamp) noexcept;
  // The last channel's stop finishes the run; exactly one caller receives it.
  Outcome StopChannel(uint64_t run, int channel, uint64_t stamp, bool* finished,
                      FinishedRun* result) noexcept;

  // Keeps a finished run whose times are not certain; see ProfilerObserver.
  void KeepInDoubt(uint64_t run) noexcept;
  // Takes the next older uncertain run of this context, at most `steps` slots before `run`, and
  // updates both. False: there is none.
  bool TakeDoubtfulBefore(uint64_t* run, uint64_t context, int* steps,
                          FinishedRun* result) noexcept;

 private:
  enum Phase : uint64_t { kEmpty, kOpening, kOpen, kDoubtful, kDone };
  static constexpr int kPhaseBits = 3;

  // Every field is atomic: a late child may read while a new run is written. It discards what it
  // read, because `state` has changed.
  struct alignas(64) Entry {
    std::atomic<uint64_t> state{0};    // the run's number and its phase
    std::atomic<uint64_t> spoiled{0};  // a run that a late child of an older one may have modified
    std::atomic<uint64_t> context{0};
    std::atomic<uint64_t> tag{0};
    std::atomic<uint64_t> start{0};
    std::atomic<uint64_t> stop{0};
    std::atomic<uint64_t> works_before{0};
    std::atomic<uint64_t> works_known{0};
    std::array<std::atomic<uint64_t>, 2> started{};  // a bit per channel
    std::array<std::atomic<uint64_t>, 2> stopped{};
    std::atomic<int> channels{0};
    std::atomic<bool> untold{false};
    std::atomic<bool> odd{false};  // a stamp was missing
  };

  static uint64_t State(uint64_t run, Phase phase) { return run << kPhaseBits | phase; }
  Entry& EntryOf(uint64_t run) { return entries_[run & (kPlaces - 1)]; }
  // Whether the run was overwritten between a check and the operation after it.
  static bool Overtaken(Entry* entry, uint64_t run) noexcept;
  static FinishedRun Read(const Entry& entry, uint64_t run) noexcept;

  std::atomic<uint64_t> next_{kPlaces};  // so that no run has number 0
  std::array<Entry, kPlaces> entries_;
};

}  // namespace diapason::plugin
