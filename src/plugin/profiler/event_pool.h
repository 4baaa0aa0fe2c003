#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace diapason::plugin {

// A run whose times have all come.
struct FinishedRun {
  uint64_t context = 0;  // as it was handed to Open
  uint64_t tag = 0;
  uint64_t start = 0;  // the first channel's, in the GPU's ticks
  uint64_t stop = 0;   // the last channel's
  uint64_t works_before = 0;
  uint64_t works_known = 0;
  bool untold = false;
  bool sane = false;  // no stamp is missing, none is before its start
};

// The runs whose times are still to come: a ring of fixed size for the whole process. The newest
// overwrite the oldest; whoever comes late for an overwritten one is told so, and changes nothing.
//
// A run is named by a number of 37 bits: its place and how often the place was used before. Any
// thread may call any function; there are no locks.
class EventPool {
 public:
  static constexpr int kPlaceBits = 12;
  static constexpr uint32_t kPlaces = 1u << kPlaceBits;
  static constexpr int kRunBits = 37;
  static constexpr int kMostChannels = 128;

  // The process's own, made at its first use and never destroyed; nullptr: no memory.
  static EventPool* Instance() noexcept;

  EventPool() = default;
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  struct NewRun {
    uint64_t context = 0;
    uint64_t tag = 0;
    int channels = 0;  // how many will be told, 1 to kMostChannels
    // How many pieces of work the communicator may have given to the GPU before this one, at least;
    // and with it and everything that was known then, at most.
    uint64_t works_before = 0;
    uint64_t works_known = 0;
    bool untold = false;  // no call was told before it
  };
  uint64_t Open(const NewRun& run) noexcept;

  enum class Outcome {
    kNoted,
    kLate,       // the run was overwritten, or is complete
    kRepeated,   // this channel was there before
    kImpossible  // no such channel, or it stops before it has started
  };
  Outcome StartChannel(uint64_t run, int channel, uint64_t stamp) noexcept;
  // With the last channel's stop the run is finished; exactly one caller is handed it.
  Outcome StopChannel(uint64_t run, int channel, uint64_t stamp, bool* finished,
                      FinishedRun* result) noexcept;

  // Keeps a finished run whose times are in doubt; see Observer.
  void KeepInDoubt(uint64_t run) noexcept;
  // Takes the next older run in doubt of this context, at most `steps` places before `run`, and
  // moves both. False: there is none.
  bool TakeDoubtfulBefore(uint64_t* run, uint64_t context, int* steps,
                          FinishedRun* result) noexcept;

 private:
  enum Phase : uint64_t { kEmpty, kOpening, kOpen, kDoubtful, kDone };
  static constexpr int kPhaseBits = 3;

  // Every field is an atomic: a late child may read while a new run is written. What it then sees
  // is thrown away, because `state` has moved on.
  struct alignas(64) Entry {
    std::atomic<uint64_t> state{0};    // the run's number and its phase
    std::atomic<uint64_t> spoiled{0};  // the run that a late child of an older one may have touched
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
  // The run was overwritten between a check and what was done after it.
  static bool Overtaken(Entry* entry, uint64_t run) noexcept;
  static FinishedRun Read(const Entry& entry, uint64_t run) noexcept;

  std::atomic<uint64_t> next_{kPlaces};  // so that no run is called 0
  std::array<Entry, kPlaces> entries_;
};

}  // namespace diapason::plugin
