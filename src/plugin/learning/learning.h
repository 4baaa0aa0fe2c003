#pragma once

#include <memory>
#include <string>

#include "agree/patient_store.h"
#include "plugin/abi/selection.h"
#include "plugin/learning/handover.h"
#include "policy/table.h"

namespace diapason::plugin {

// A context as the library's calls use it.
struct LearningContext final : ContextHandover {
  LearningContext(Collective asked, int size_band, agree::CellStore* store,
                  agree::EpochLog::Options options);

  // The answer for calls from index `first` on.
  struct Ready {
    Config config;
    Reason reason = Reason::kLearned;
    bool lost = false;  // the choice of the other ranks cannot be known
    // While the default and the policy take turns: whose turn it is. `config` is the default.
    enum class Turn : uint8_t { kNone, kDefault, kPolicy };
    Turn turn = Turn::kNone;
    bool counts = false;
    uint32_t epoch = 0;
    uint64_t first = 0;
    uint64_t length = 0;
  };
  Ready ready;
  Ready frozen;  // for calls that never explore: captured ones, and groups that are not counted
  agree::EpochLog log;
  bool offer_made = false;
  int64_t told_epoch = -1;
  bool tracking = false;
  bool timing = false;
  uint64_t widest = 0;  // the pairs of the widest table that was seen while it explores
};

// Learning inside the library's calls, for one communicator on one rank: counts the calls, gives
// the agreed answers, and hands over to the background (handover.h has the picture).
//
// NCCL serialises these calls, on whatever thread they come; between the ends of epochs they
// neither wait nor allocate nor make system calls. RecordTime may come on any thread.
class Learning {
 public:
  Learning(LearningOptions options, const policy::Policy& policy, const HostLog& log,
           journal::Journal* journal);
  ~Learning();
  Learning(const Learning&) = delete;
  Learning& operator=(const Learning&) = delete;

  // The part that the background shares.
  LearningHandover* handover() { return &handover_; }

  // A collective was called, in group number `group` (0: unknown). The first call of a group
  // settles the questions before it: launched calls count, the others are dropped.
  void Called(bool captured, uint64_t group) noexcept {
    if (group == 0 || group != group_ || asked_) NewGroup(group);
    handover_.calls = handover_.calls + 1;
    captured_ = captured;
    if (captured) SawCapture();
    slow_path_ = captured || lost_ || handover_.diverged || (handover_.calls > 1 && !groups_tick_);
  }
  // A kernel is launched. It confirms only the questions of its own group: a point-to-point call
  // launches a kernel too, and must not confirm the questions of a simulated group.
  void Launched(uint64_t group, void* stream) noexcept {
    if (group == 0 || group != group_) return;
    handover_.launched = true;
    if (timing_ > 0) BeginTiming(stream);
  }
  void LaunchEnded() noexcept {
    if (timing_launch_.pair >= 0) EndTiming();
  }

  // The answer to a question; nullptr: calls of this kind are not learned.
  const LearningContext::Ready* Ask(Collective collective, uint64_t bytes,
                                    const CostTable& table) noexcept {
    const int band = SizeBand(bytes);
    LearningContext* context = contexts_[static_cast<size_t>(collective)][band].get();
    if (context == nullptr || slow_path_ || handover_.calls == 0) [[unlikely]] {
      return AskSlowPath(collective, band, table);
    }
    return Count(context, table);
  }
  // Of the last question: the index of its call, and its context, if the call is counted.
  uint64_t last_index() const noexcept { return last_index_; }
  LearningContext* last_context() const noexcept { return last_context_; }
  // Whether a context explores, so that runs must be matched with questions.
  bool tracking() const noexcept { return tracking_ > 0; }
  // Whether this process still searches the order of calls for iterations.
  bool wants_pattern() const noexcept { return handover_.wants_pattern; }

  // Whether GPU events are available for timing.
  bool has_events() const noexcept { return handover_.events != nullptr; }
  // Records which configuration actually ran for a question, and its GPU time.
  void RecordActual(LearningContext* context, const Config& asked, const RunSample& run) noexcept;
  void RecordTime(const LearningContext& context, uint64_t index, double seconds) noexcept {
    handover_.samples.Push({context.number, index, seconds});
  }

 private:
  static constexpr size_t kMostTouched = 64;

  // Counts a question about a call, and returns its answer.
  const LearningContext::Ready* Count(LearningContext* context, const CostTable& table) noexcept {
    const uint64_t index = context->committed + (handover_.calls > 1 ? context->pending : 0u);
    if (index - context->ready.first >= context->ready.length) [[unlikely]] {
      if (!Advance(context, index, table)) return &lost_answer_;
    }
    if (context->pending == 0) Touch(context);
    context->pending = context->pending + 1;
    asked_ = true;
    last_context_ = context;
    last_index_ = index;
    if (limits_calls_ && (context->tracking || context->timing)) [[unlikely]] {
      if (IsLimited(context, table)) last_context_ = nullptr;
    }
    return &context->ready;
  }
  // Whether a configuration of the call's own has removed pairs from its table. Such a call counts
  // like every other one (it is made so on all ranks), but what it ran, and for how long, says
  // nothing about the others.
  static bool IsLimited(LearningContext* context, const CostTable& table) noexcept;
  void Touch(LearningContext* context) noexcept {
    if (touched_count_ < kMostTouched) touched_[touched_count_] = context;
    ++touched_count_;
  }
  void BeginTiming(void* stream) noexcept;
  void EndTiming() noexcept;
  void EndCycle(const LearningContext& context) noexcept;
  void NewGroup(uint64_t group) noexcept;
  void SawCapture() noexcept;
  const LearningContext::Ready* AskSlowPath(Collective collective, int band,
                                            const CostTable& table) noexcept;
  void MakeContext(Collective collective, int band);
  void MakeOffer(LearningContext* context, const CostTable& table);
  bool Advance(LearningContext* context, uint64_t index, const CostTable& table) noexcept;
  void Freeze(LearningContext* context);
  void TellEntered(LearningContext* context);
  bool Lose(const std::string& why) noexcept;
  LearningContext::Ready::Turn TurnOf(bool by_policy) const {
    using Turn = LearningContext::Ready::Turn;
    if (!handover_.options.compare) return Turn::kNone;
    return by_policy ? Turn::kPolicy : Turn::kDefault;
  }
  bool Learns(Collective collective) const;

  LearningHandover handover_;
  const bool timed_by_library_;  // no GPU events: the library's events time kernels
  const bool groups_tick_;
  const bool limits_calls_;  // the library lets calls have configurations of their own

  // Call counting.
  Relaxed<uint64_t> group_;
  Relaxed<bool> asked_;
  Relaxed<bool> captured_;
  Relaxed<bool> slow_path_;
  Relaxed<bool> lost_;
  Relaxed<bool> saw_capture_;
  Relaxed<int> tracking_;  // contexts whose runs are matched with questions
  Relaxed<int> timing_;    // contexts whose kernels are timed
  uint32_t touched_count_ = 0;
  LearningContext* touched_[kMostTouched] = {};
  LearningContext* last_context_ = nullptr;
  uint64_t last_index_ = 0;
  LearningContext::Ready lost_answer_;
  std::unique_ptr<LearningContext> contexts_[kAskedCollectiveCount][kSizeBands];
  policy::DecisionTable table_;
  agree::PatientStore patient_;

  // The kernel whose launch has begun; its pair is -1 before and after.
  LearningHandover::Launch timing_launch_{0, 0, -1, 0};
  void* timing_stream_ = nullptr;
  double timing_begun_ = 0;
  uint64_t timed_group_ = ~uint64_t{0};
  // The timed call before, from whose launch a cycle may begin; its pair is -1 without one.
  LearningHandover::Launch cycle_launch_{0, 0, -1, 0};
  double cycle_begun_ = 0;
  uint64_t cycle_groups_ = 0;
  uint64_t groups_seen_ = 0;
};

}  // namespace diapason::plugin
