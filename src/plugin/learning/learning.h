#pragma once

#include <pthread.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "agree/patient_store.h"
#include "agree/store.h"
#include "domain/decision.h"
#include "journal/ring.h"
#include "journal/writer.h"
#include "learn/learner.h"
#include "plugin/abi/host.h"
#include "plugin/abi/selection.h"
#include "plugin/learning/context.h"
#include "plugin/learning/gpu_events.h"
#include "plugin/learning/reward_file.h"
#include "policy/policy.h"
#include "policy/table.h"

namespace diapason::plugin {

// The inputs of learning that all ranks of a communicator have agreed on.
struct LearningOptions {
  agree::CellStore* store = nullptr;        // the learning thread's store; outlives every Learning
  agree::CellStore* calls_store = nullptr;  // the same, for calls
  std::chrono::milliseconds patience{0};    // limit of a call that needs the store
  std::string freeze_file;
  std::string prefix;  // prefix of this communicator's cells
  uint64_t comm_id = 0;
  int rank = 0;
  Shape shape;
  Host host;
  uint32_t number = 0;  // the communicator's number in the journal
  learn::LearnOptions learn;
  std::string reward = "auto";
  std::string reward_file;
  std::string arms = "auto";
  std::string learned;
  uint64_t memory = 0;
  bool numerics_pinned = false;
  bool allgather_channels = true;
};

// Learning in one communicator, on one rank: counts the calls, gives the answers, and holds the
// state that the learning thread works on.
//
// Called, Launched and Ask run inside the library's calls. NCCL serialises these calls, on whatever
// thread they come; between the ends of epochs they neither wait nor allocate nor make system
// calls.
class Learning {
 public:
  Learning(LearningOptions options, const policy::Policy& policy, const HostLog& log,
           journal::Journal* journal);
  ~Learning();
  Learning(const Learning&) = delete;
  Learning& operator=(const Learning&) = delete;

  // A collective was called, in group number `group` (0: unknown). The first call of a group
  // settles the questions before it: launched calls count, the others are dropped.
  void Called(bool captured, uint64_t group) noexcept {
    if (group == 0 || group != group_ || asked_) NewGroup(group);
    calls_ = calls_ + 1;
    captured_ = captured;
    if (captured) SawCapture();
    slow_path_ = captured || lost_ || diverged_ || (calls_ > 1 && !groups_tick_);
  }
  // A kernel is launched. It confirms only the questions of its own group: a point-to-point call
  // launches a kernel too, and must not confirm the questions of a simulated group.
  void Launched(uint64_t group, void* stream) noexcept {
    if (group == 0 || group != group_) return;
    launched_ = true;
    if (timing_ > 0) BeginTiming(stream);
  }
  void LaunchEnded() noexcept {
    if (timing_pair_ >= 0) EndTiming();
  }

  // The answer to a question; nullptr: calls of this kind are not learned.
  const LearningContext::Ready* Ask(Collective collective, uint64_t bytes,
                                    const CostTable& table) noexcept {
    const int band = SizeBand(bytes);
    LearningContext* context = contexts_[static_cast<size_t>(collective)][band];
    if (context == nullptr || slow_path_ || calls_ == 0) [[unlikely]] {
      return AskSlowPath(collective, band, table);
    }
    const uint64_t index = context->committed + (calls_ > 1 ? context->pending : 0u);
    if (index - context->ready.first >= context->ready.length) [[unlikely]] {
      if (!Advance(context, index, table)) return &lost_answer_;
    }
    if (context->pending == 0) Touch(context);
    context->pending = context->pending + 1;
    asked_ = true;
    last_context_ = context;
    last_index_ = index;
    return &context->ready;
  }
  // Of the last question: the index of its call, and whether the call is counted.
  uint64_t last_index() const noexcept { return last_index_; }
  LearningContext* last_context() const noexcept { return last_context_; }
  // Calls of all contexts, as counted by the learning thread.
  uint64_t calls_of_all() const { return calls_of_all_; }
  // The calls of a context so far, including launched ones that are not settled yet.
  uint64_t CallsMade(const LearningContext& context) const noexcept;
  bool captured() const noexcept { return captured_; }

  // Whether GPU events are available for timing.
  bool has_events() const noexcept { return events_ != nullptr; }
  // Records which configuration actually ran for a question, and its GPU time. RecordActual is
  // called on the thread that asks.
  void RecordActual(LearningContext* context, const Config& asked, const RunSample& run) noexcept;
  void RecordTime(LearningContext* context, uint64_t index, double seconds) noexcept;

  // Called by the learning thread: does the work that is due. Returns whether a context explores.
  bool Poll(double now);
  // Records an iteration boundary, for rank 0.
  void Mark(RewardSource source, double now) noexcept;
  bool Report(Collective collective, uint64_t bytes, double seconds) noexcept;
  bool leads() const { return options_.rank == 0; }
  // Whether this process still searches the order of calls for iterations.
  bool wants_pattern() const noexcept { return wants_pattern_; }
  // Whether a context explores, so that runs must be matched with questions.
  bool tracking() const noexcept { return tracking_ > 0; }
  // Called last: saves the results. The communicator must not ask any more. `forget`: its cells may
  // be removed.
  void Finish(bool forget, Deadline deadline);

  // Whether exploration has stopped, because an operator froze the job or ranks count differently.
  bool frozen() const noexcept { return frozen_; }
  // After a background call to the store has failed, no further one is made for a moment, since
  // each may take its whole time limit. Returns whether the call succeeded.
  bool Reached(const Status& status, double now) noexcept;
  bool store_away(double now) const noexcept { return now < away_until_; }

  // The learning thread holds it during Poll; the end of the communicator takes it too. Exactly one
  // of the two calls Finish.
  pthread_mutex_t poll_mutex = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<bool> finish_wanted{false};
  // Whether Finish(true) was called; guarded by `poll_mutex`.
  bool finished() const { return finished_; }
  // Stops timing kernels. REQUIRES: `poll_mutex` is held.
  void DropEvents() noexcept {
    dropped_events_ = dropped_events_ || events_ != nullptr;
    events_.reset();
  }
  // The communicator is gone; only the learning thread still holds this object.
  void BecomeLate() noexcept { late_ = true; }

  const LearningOptions& options() const { return options_; }
  const HostLog& log() const { return log_; }
  journal::Journal* journal() const { return journal_; }
  const policy::Policy& policy() const { return policy_; }

 private:
  static constexpr size_t kMostTouched = 64;
  struct Sample {
    LearningContext* context;
    uint64_t index;
    double seconds;
  };

  struct Launch {
    LearningContext* context;
    uint64_t index;
    int pair;
    double since;
  };

  void BeginTiming(void* stream) noexcept;
  void EndTiming() noexcept;
  void TakeTimes(double now);
  void Touch(LearningContext* context) noexcept {
    if (touched_count_ < kMostTouched) touched_[touched_count_] = context;
    ++touched_count_;
  }
  void NewGroup(uint64_t group) noexcept;
  void SawCapture() noexcept;
  const LearningContext::Ready* AskSlowPath(Collective collective, int band,
                                            const CostTable& table) noexcept;
  LearningContext* MakeContext(Collective collective, int band);
  void MakeOffer(LearningContext* context, const CostTable& table);
  bool Advance(LearningContext* context, uint64_t index, const CostTable& table) noexcept;
  void Freeze(LearningContext* context);
  void TellEntered(LearningContext* context);
  bool Lose(const std::string& why) noexcept;
  bool Learns(Collective collective) const;
  void TakeEntered(LearningContext* context, double now);
  void TendContext(LearningContext* context, double now);
  void ReadAhead(LearningContext* context, double now);
  void TakeRuns();
  void CheckRuns(LearningContext* context, double now);
  void Differs(const LearningContext& context, const RunDifference& difference);
  void WatchStop(double now);
  void TakeStop(const std::string& text);
  void WatchFreeze(double now);
  void ReadRewardFile(double now, const std::vector<LearningContext*>& contexts);
  std::string RewardFilePath() const;
  void Save(const std::vector<LearningContext*>& contexts);

  const LearningOptions options_;
  const policy::Policy policy_;
  const HostLog log_;
  journal::Journal* const journal_;
  policy::DecisionTable table_;
  const bool groups_tick_;

  // Call counting.
  Relaxed<uint64_t> group_;
  Relaxed<uint32_t> calls_;
  Relaxed<bool> launched_;
  Relaxed<bool> asked_;
  Relaxed<bool> captured_;
  Relaxed<bool> slow_path_;
  Relaxed<bool> lost_;
  Relaxed<bool> saw_capture_;
  // Ranks were found to run different configurations: the next question fails. Set by the learning
  // thread, after stop_text_.
  std::atomic<bool> diverged_{false};
  uint32_t touched_count_ = 0;
  LearningContext* touched_[kMostTouched] = {};
  LearningContext* last_context_ = nullptr;
  uint64_t last_index_ = 0;
  LearningContext::Ready lost_answer_;

  LearningContext* contexts_[kAskedCollectiveCount][kSizeBands] = {};
  pthread_mutex_t list_mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::vector<std::unique_ptr<LearningContext>> list_;  // guarded by list_mutex_
  journal::Ring<Sample> samples_{4096};
  struct Run {
    LearningContext* context;
    RunSample sample;
  };
  journal::Ring<Run> runs_{1024};
  agree::PatientStore patient_;  // for the asking thread

  // Kernels in flight on the GPU.
  std::unique_ptr<GpuEvents> events_;
  int timing_pair_ = -1;  // between the begin and the end of a launch
  void* timing_stream_ = nullptr;
  uint64_t timed_group_ = ~uint64_t{0};
  Launch timing_launch_{};
  journal::Ring<Launch> launches_{512};
  std::deque<Launch> running_;
  Relaxed<int> tracking_;  // contexts whose runs are matched with questions
  Relaxed<int> timing_;    // contexts whose kernels are timed
  std::atomic<bool> wants_pattern_{false};
  std::unique_ptr<RewardFile> reward_lines_;
  double last_saved_ = 0;
  double away_until_ = 0;
  double next_stop_look_ = 0;
  std::string stop_wanted_;  // a difference that has not been reported to the other ranks yet
  std::string stop_text_;    // what they have
  bool clocks_differ_ = false;
  bool frozen_ = false;
  std::atomic<bool> late_{false};
  bool finished_ = false;
  bool dropped_events_ = false;
  uint64_t calls_of_all_ = 0;
};

}  // namespace diapason::plugin
