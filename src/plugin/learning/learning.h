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

// What all communicators of a job that learns have agreed on, and what they learn with.
struct LearningOptions {
  agree::CellStore* store = nullptr;        // the background thread's; outlives all learnings
  agree::CellStore* calls_store = nullptr;  // the same, for calls
  std::chrono::milliseconds patience{0};    // of a call that needs the store
  std::string freeze_file;
  std::string prefix;  // of this communicator's cells
  uint64_t comm_id = 0;
  int rank = 0;
  Shape shape;
  Host host;
  uint32_t number = 0;  // the communicator's, in the journal
  learn::LearnOptions learn;
  std::string reward = "auto";
  std::string reward_file;
  std::string arms = "auto";
  std::string learned;
  uint64_t memory = 0;
  bool numerics_pinned = false;
  bool allgather_channels = true;
};

// Learning in one communicator, on one rank: the clock, the answers, and what its learning thread
// needs.
//
// Called, Launched and Ask run inside the library's calls, one after another (the library takes
// turns for us, though on different threads); between the ends of epochs they neither wait nor
// allocate nor enter the system.
class Learning {
 public:
  Learning(LearningOptions options, const policy::Policy& policy, const HostLog& log,
           journal::Journal* journal);
  ~Learning();
  Learning(const Learning&) = delete;
  Learning& operator=(const Learning&) = delete;

  // A collective was called, in the group of that number (0: unknown). The first call of a group
  // settles what was asked before: launched calls count, others never happened.
  void Called(bool captured, uint64_t group) noexcept {
    if (group == 0 || group != group_ || asked_) NewGroup(group);
    calls_ = calls_ + 1;
    captured_ = captured;
    if (captured) SawCapture();
    slow_path_ = captured || lost_ || diverged_ || (calls_ > 1 && !groups_tick_);
  }
  // A kernel is launched. It confirms the questions of its own group only: a point-to-point call
  // launches one too, and must not confirm what a simulated group has asked.
  void Launched(uint64_t group, void* stream) noexcept {
    if (group == 0 || group != group_) return;
    launched_ = true;
    if (timing_ > 0) BeginTiming(stream);
  }
  void LaunchEnded() noexcept {
    if (timing_pair_ >= 0) EndTiming();
  }

  // The answer to a question; nullptr: nothing is learned about such calls.
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
  // Of the last question: its index, and whether it counts towards the clock.
  uint64_t last_index() const noexcept { return last_index_; }
  LearningContext* last_context() const noexcept { return last_context_; }
  // Calls of all contexts; the learning thread's count.
  uint64_t calls_of_all() const { return calls_of_all_; }
  // The calls a context has made, launched ones that are not settled yet included.
  uint64_t CallsMade(const LearningContext& context) const noexcept;
  bool captured() const noexcept { return captured_; }

  // Whether the GPU's own events are there to measure with.
  bool has_events() const noexcept { return events_ != nullptr; }
  // What really ran for a question, and what it took on the GPU. RecordActual comes on the thread
  // that asks.
  void RecordActual(LearningContext* context, const Config& asked, const RunSample& run) noexcept;
  void RecordTime(LearningContext* context, uint64_t index, double seconds) noexcept;

  // The learning thread's: whatever there is to do now. Returns whether something is being tried.
  bool Poll(double now);
  // Remembers the iteration boundary, for rank 0.
  void Mark(RewardSource source, double now) noexcept;
  bool Report(Collective collective, uint64_t bytes, double seconds) noexcept;
  bool leads() const { return options_.rank == 0; }
  // Whether somebody here still looks for iterations in the calls.
  bool wants_pattern() const noexcept { return wants_pattern_; }
  // Whether anything is being tried: then runs must be told apart.
  bool tracking() const noexcept { return tracking_ > 0; }
  // The last thing: what was learned is written down. The communicator must not ask any more.
  // `forget`: its cells may go.
  void Finish(bool forget, Deadline deadline);

  // Nothing is tried any more: an operator wants it so, or ranks were found to count differently.
  bool frozen() const noexcept { return frozen_; }
  // A background call to the store has failed: no further one for a moment, since each may take its
  // whole limit. Returns whether the call was fine.
  bool Reached(const Status& status, double now) noexcept;
  bool store_away(double now) const noexcept { return now < away_until_; }

  // Between the learning thread, who holds it while it tends this, and the end of the communicator.
  // Exactly one of the two finishes.
  pthread_mutex_t tending = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<bool> finish_wanted{false};
  // Whether Finish(true) was called; guarded by tending.
  bool finished() const { return finished_; }
  // What is measured is measured no more. REQUIRES: tending is held.
  void DropEvents() noexcept {
    dropped_events_ = dropped_events_ || events_ != nullptr;
    events_.reset();
  }
  // The communicator is gone, and only the learning thread has this still.
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

  // The clock.
  Relaxed<uint64_t> group_;
  Relaxed<uint32_t> calls_;
  Relaxed<bool> launched_;
  Relaxed<bool> asked_;
  Relaxed<bool> captured_;
  Relaxed<bool> slow_path_;
  Relaxed<bool> lost_;
  Relaxed<bool> saw_capture_;
  // Ranks were found to run differently: the next question fails. Set by the learning thread, after
  // stop_text_.
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

  // Kernels on their way through the GPU.
  std::unique_ptr<GpuEvents> events_;
  int timing_pair_ = -1;  // between the begin and the end of a launch
  void* timing_stream_ = nullptr;
  uint64_t timed_group_ = ~uint64_t{0};
  Launch timing_launch_{};
  journal::Ring<Launch> launches_{512};
  std::deque<Launch> running_;
  Relaxed<int> tracking_;  // contexts whose runs are told apart
  Relaxed<int> timing_;    // contexts whose kernels are measured
  std::atomic<bool> wants_pattern_{false};
  std::unique_ptr<RewardFile> reward_lines_;
  double last_saved_ = 0;
  double away_until_ = 0;
  double next_stop_look_ = 0;
  double next_freeze_look_ = 0;
  std::string stop_wanted_;  // a difference that the other ranks have not been told of yet
  std::string stop_text_;    // what they have
  bool clocks_differ_ = false;
  bool frozen_ = false;
  std::atomic<bool> late_{false};
  bool finished_ = false;
  bool dropped_events_ = false;
  uint64_t calls_of_all_ = 0;
};

}  // namespace diapason::plugin
