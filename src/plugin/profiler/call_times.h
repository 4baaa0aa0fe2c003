#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/settings.h"
#include "domain/schedule.h"
#include "domain/vocabulary.h"
#include "plugin/profiler/comm_observer.h"

namespace diapason::plugin {

// When a call is slow: DIAPASON_SLOW_CALL and DIAPASON_SLOW_FACTOR. Off unless one of them is set.
struct SlowCallLimits {
  double seconds = -1;  // GPU time above which a call is slow; negative: no such limit
  double factor = 0;    // the same, in multiples of the usual time; 0: no such limit
  bool on() const { return seconds >= 0 || factor > 0; }
};
SlowCallLimits ReadSlowCallLimits(const Settings& settings);

// GPU times of one communicator's collectives, by collective and size: logs the slow ones as they
// end, and a summary at the end. Any thread may count; counting takes no lock, and allocates only
// at the first call of a collective and size and for a line of the log.
//
// The log is standard error: never standard output, which belongs to the program. A line that could
// block (a full pipe) is dropped.
class CallTimes {
 public:
  struct Place {
    int rank = -1;
    int ranks = 0;
    std::string communicator;  // its name, or its id
    Library library = Library::kNccl;
  };
  // Writes one line or several; returns whether it did. Must not block.
  using Sink = bool (*)(const std::string& text) noexcept;
  static bool ToStandardError(const std::string& text) noexcept;

  CallTimes(Place place, SlowCallLimits limits, Sink sink = ToStandardError);
  ~CallTimes();
  CallTimes(const CallTimes&) = delete;
  CallTimes& operator=(const CallTimes&) = delete;

  // A run that took `seconds`; `now_ns` of a monotonic clock, for at most one line per second.
  void Count(const RunSeen& run, double seconds, uint64_t now_ns) noexcept;
  // A run whose time the library did not report.
  void CountUntimed() noexcept { untimed_.fetch_add(1, std::memory_order_relaxed); }

  // Several lines; "" if no call was counted.
  std::string Summary() const;
  // Writes the summary, on rank 0 and on ranks that had slow calls.
  void End() noexcept;

 private:
  // Times are counted in steps of a sixteenth of an octave from 1/16 us to an hour.
  static constexpr int kStepsPerOctave = 16;
  static constexpr int kOctaves = 36;
  static constexpr int kSteps = kStepsPerOctave * kOctaves;
  static constexpr size_t kConfigs = 4;

  struct Class {
    std::atomic<uint64_t> calls{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> total_ns{0};
    std::atomic<uint64_t> most_ns{0};
    std::atomic<uint64_t> usual_ns{0};  // the median of some calls ago; 0: too few calls
    std::array<std::atomic<uint32_t>, kSteps> steps{};
    // What ran, and how often; further ones are not counted. 0: a free place.
    std::array<std::atomic<uint64_t>, kConfigs> config{};
    std::array<std::atomic<uint64_t>, kConfigs> config_calls{};
  };
  using Table = std::array<std::array<std::atomic<Class*>, kSizeBands>, kCollectiveCount>;

  static int StepOf(uint64_t ns);
  static double SecondsAt(const Class& one, double share);
  Class* ClassOf(const RunSeen& run) noexcept;
  bool IsSlow(const Class& one, double seconds) const;
  void LogSlow(const RunSeen& run, double seconds, double usual_s, uint64_t now_ns) noexcept;
  std::string ConfigOf(int collective, uint64_t packed) const;
  std::string Row(int collective, int band, const Class& one) const;

  const Place place_;
  const SlowCallLimits limits_;
  const Sink sink_;
  Table table_{};
  std::atomic<uint64_t> slow_{0};
  std::atomic<uint64_t> unsaid_{0};
  std::atomic<uint64_t> untimed_{0};
  std::atomic<uint64_t> next_line_ns_{0};
};

}  // namespace diapason::plugin
