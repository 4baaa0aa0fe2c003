#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "domain/decision.h"
#include "journal/writer.h"
#include "plugin/abi/relaxed.h"
#include "plugin/learning/learning.h"
#include "plugin/profiler/call_times.h"
#include "plugin/profiler/comm_observer.h"
#include "plugin/profiler/observer.h"

namespace diapason::plugin {

// The state of one communicator, shared by the profiler and the tuner half of the plugin. The
// library initialises the profiler half first, on the same thread, with the rank; the tuner half
// then finds the object there. It is reference-counted and lives until both halves have released
// it.
class CommState final : public CommObserver {
 public:
  explicit CommState(const ProfilerInit& init);

  // The communicator that the profiler half has just initialised on this thread; the caller must
  // Release it. nullptr: the profiler half is not loaded, or nothing observes this communicator.
  static CommState* TakeNewComm(uint64_t comm_id, const Shape& shape) noexcept;
  void Release() noexcept;

  int rank() const { return init_.rank; }
  int profiler_api() const { return init_.api; }
  const std::string& name() const { return init_.name; }
  // Of the group that is asked about now: its calls on this communicator, and whether the last one
  // is captured into a graph. 0 calls: the library does not tell (before API v5).
  uint32_t group_calls() const noexcept { return calls_; }
  bool captured() const noexcept {
    const uint32_t calls = calls_;
    return calls > 0 && call_[std::min<uint32_t>(calls, kCalls) - 1].captured;
  }

  // Logs slow calls and a summary; called before the first event.
  void KeepCallTimes(const SlowCallLimits& limits, Library library);

  // Called by the tuner half before the first question.
  void KeepJournal(journal::Journal* journal, uint32_t number, bool with_times);
  Learning* Learn(std::shared_ptr<Learning> learning);

  // Remembers the answer to a question, so that the run can be matched with it.
  void Asked(const Question& question, uint32_t call, const Config& asked, LearningContext* context,
             uint64_t index) noexcept;
  // Whether Asked must be called.
  bool tracking() const noexcept {
    return journal_ != nullptr || (learning_ != nullptr && learning_->tracking());
  }

  void Called(const CallSeen& call) noexcept override;
  void Launched(uint64_t group, void* stream) noexcept override;
  void LaunchEnded() noexcept override;
  uint64_t RecordActual(const RunSeen& run) noexcept override;
  void Timed(uint64_t tag, const GpuSpan& span) noexcept override;

 private:
  ~CommState();

  static constexpr size_t kQuestions = 16;
  static constexpr size_t kRuns = 1024;
  static constexpr size_t kCalls = 8;

  // The answers of the current group. One thread writes them and matches runs with them; other
  // threads see a different thread's id and do not use them.
  struct Answered {
    Relaxed<uint32_t> call;
    Relaxed<int> collective;
    Relaxed<uint64_t> bytes;
    Relaxed<int> algorithm;
    Relaxed<int> protocol;
    Relaxed<int> channels;
    Relaxed<LearningContext*> context;
    Relaxed<uint64_t> index;
    Relaxed<bool> used;
  };
  // A run whose duration has not arrived yet.
  struct Run {
    std::atomic<uint64_t> tag{0};
    Relaxed<LearningContext*> context;
    Relaxed<uint64_t> index;
    Relaxed<uint32_t> call;
    Relaxed<uint64_t> time_ns;
    Relaxed<uint64_t> bytes;
    Relaxed<uint64_t> sequence;
    Relaxed<int> collective;
    Relaxed<int> algorithm;
    Relaxed<int> protocol;
    Relaxed<int> channels;
    Relaxed<bool> replayed;
  };

  void NewGroup(uint64_t group) noexcept;
  void WriteBypassed(int collective, uint64_t bytes, bool captured) noexcept;
  Answered* Match(const RunSeen& run) noexcept;
  void WriteRun(const Run& run, const GpuSpan* span) noexcept;
  void GiveUp(const Run& run) noexcept;
  void WriteUntimed() noexcept;

  const ProfilerInit init_;
  std::atomic<int> references_{1};
  journal::Journal* journal_ = nullptr;
  uint32_t number_ = 0;
  bool with_times_ = false;
  std::shared_ptr<Learning> learning_;     // shared with the learning thread
  std::unique_ptr<CallTimes> call_times_;  // null: not wanted
  bool call_times_timed_ = false;

  Relaxed<uint64_t> group_;
  Relaxed<uint64_t> asking_thread_;
  Relaxed<uint32_t> questions_;
  Relaxed<uint32_t> calls_;
  Relaxed<bool> launched_;
  Relaxed<bool> ran_;
  Answered question_[kQuestions];
  struct Seen {
    Relaxed<int> collective;
    Relaxed<uint64_t> bytes;
    Relaxed<bool> captured;
  };
  Seen call_[kCalls];
  std::atomic<uint64_t> next_tag_{1};
  std::unique_ptr<Run[]> runs_;
};

}  // namespace diapason::plugin
