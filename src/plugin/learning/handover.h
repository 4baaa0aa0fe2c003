#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agree/epochs.h"
#include "domain/decision.h"
#include "journal/ring.h"
#include "journal/writer.h"
#include "learn/learner.h"
#include "plugin/abi/host.h"
#include "plugin/abi/relaxed.h"
#include "plugin/abi/selection.h"
#include "plugin/learning/gpu_events.h"
#include "plugin/learning/run_check.h"
#include "plugin/learning/waker.h"
#include "policy/policy.h"

// The hand-over between the two threads of learning, and nothing else that both may touch:
//
//        the library's calls                                       the background
//   CommState ─owns▶ Learning ─contains▶ LearningHandover ◀shares─ LearningWorker ◀owns─ thread
//                       │ owns                 │ lists                 │ owns
//                       ▼                      ▼                       ▼
//                 LearningContext ─is a▶ ContextHandover ◀uses─ Reporter, ContextExplorer
//
// Learning owns the hand-over, so that a call reaches it without a pointer; the worker's share
// keeps both alive until the worker is done. No object here knows Learning or LearningWorker.

namespace diapason::plugin {

// The pairs of algorithm and protocol that a rank can run, one bit each; ranks exchange these.
inline constexpr int kOfferedAlgorithms = 8;
inline constexpr int kOfferedProtocols = 4;
inline constexpr size_t kPairs = size_t{kOfferedAlgorithms} * kOfferedProtocols;
constexpr size_t PairNumber(int algorithm, int protocol) {
  return static_cast<size_t>(algorithm) * kOfferedProtocols + static_cast<size_t>(protocol);
}
constexpr bool CanBeOffered(int algorithm, int protocol) {
  return algorithm >= 0 && algorithm < kOfferedAlgorithms && protocol >= 0 &&
         protocol < kOfferedProtocols;
}

// Sources of rewards, best first.
enum class RewardSource : uint8_t { kStep, kReport, kFile, kPattern, kCycle, kGpu };
inline constexpr int kRewardSources = 6;
std::string_view RewardSourceName(RewardSource source);
// A reward that covers whole iterations, not single calls.
inline bool CoversIterations(RewardSource source) {
  return source == RewardSource::kStep || source == RewardSource::kPattern;
}

// When cycles (LearningHandover::Cycle) are recorded: never, while configurations are tried, or
// also before, to find out whether they can be the reward.
enum class CycleUse : uint8_t { kNever, kWhileTrying, kAlways };

// The inputs of learning that all ranks of a communicator have agreed on.
struct LearningOptions {
  agree::CellStore* store = nullptr;        // the learning thread's store; outlives every Learning
  agree::CellStore* calls_store = nullptr;  // the same, for calls
  Waker* waker = nullptr;                   // the learning thread's; lives as long as the process
  std::chrono::milliseconds patience{0};    // limit of a call that needs the store
  std::string freeze_file;
  std::string prefix;  // prefix of this communicator's cells
  uint64_t comm_id = 0;
  int rank = 0;
  Shape shape;
  Host host;
  bool is_2_31 = false;  // the library is 2.31 or later, see Host
  TableRules rules() const { return {host.library, is_2_31}; }
  int min_ctas = 0;     // no call gets fewer channels; 0: no such limit
  uint32_t number = 0;  // the communicator's number in the journal
  // The default and the policy take turns, and nothing is learned.
  bool compare = false;
  double turn_seconds = 0;
  // A program outside the job says what runs, and nothing is learned.
  bool ordered = false;
  bool learns() const { return !compare && !ordered; }
  learn::LearnOptions learn;
  std::string reward = "auto";
  std::string reward_file;
  std::string arms = "auto";
  std::string learned;
  uint64_t memory = 0;
  bool numerics_pinned = false;
  bool allgather_channels = true;
};

// An iteration boundary, or the reported duration of a call.
struct RewardMark {
  uint64_t calls = 0;  // made before it
  double time = 0;     // for a report, the duration
  RewardSource source = RewardSource::kStep;
};

// One collective in one size band of one communicator, on this rank: the part for both threads. The
// calls write; the background takes. Every member says how it is synchronised.
struct ContextHandover {
  ContextHandover(Collective asked, int size_band, std::string cells)
      : collective(asked), band(size_band), prefix(std::move(cells)) {}

  const Collective collective;
  const int band;
  const std::string prefix;  // of its cells
  uint32_t number = 0;       // its place in the list; constant once it is there
  std::string Name() const;  // "allreduce up to 1MiB"

  // Counters, relaxed: the background may see one without the other. They place a reward to within
  // the calls being made, never a decision.
  Relaxed<uint64_t> committed;  // calls that were launched
  Relaxed<uint32_t> pending;    // questions since
  // What the library actually used; relaxed as well.
  Relaxed<int> ran_channels[kOfferedAlgorithms][kOfferedProtocols];
  Relaxed<int> default_algorithm{-1};
  Relaxed<int> default_protocol{-1};

  agree::KnownCells known;  // filled by the background, taken by the calls; has its own lock

  // Guarded by `mutex`, which a call takes only when it enters an epoch, first sees the costs, or
  // is found to begin an iteration.
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::vector<agree::EpochLog::Epoch> entered;
  bool offer_ready = false;
  uint64_t offer = 0;
  std::vector<float> costs;  // the library's cost table at the first question
  std::deque<RewardMark> marks;
  std::deque<RewardMark> reported;
};

// All that the calls of one communicator and the background share.
struct LearningHandover {
  LearningHandover(LearningOptions agreed, const policy::Policy& rows, const HostLog& to,
                   journal::Journal* records);
  ~LearningHandover();
  LearningHandover(const LearningHandover&) = delete;
  LearningHandover& operator=(const LearningHandover&) = delete;

  // Constant.
  const LearningOptions options;
  const policy::Policy policy;
  const HostLog log;
  journal::Journal* const journal;
  bool leads() const { return options.rank == 0; }

  // The calls to the background: counters of the current group, relaxed like those of a context.
  Relaxed<uint32_t> calls;
  Relaxed<bool> launched;
  // The calls of a context so far, including launched ones that are not settled yet. Any thread.
  uint64_t CallsMade(const ContextHandover& context) const noexcept;

  // The calls to the background: rings, published with release and taken with acquire. A full ring
  // loses a sample, never a call.
  struct Sample {
    uint32_t context;
    uint64_t index;
    double seconds;
  };
  // From the launch of a call to that of the next one, where both are of one context and no other
  // call of the communicator lies between them.
  struct Cycle {
    uint32_t context;
    uint64_t index;
    double seconds;
    bool ended;  // the call had ended on the GPU when the next one was launched
  };
  struct Run {
    uint32_t context;
    RunSample sample;
  };
  struct Launch {
    uint32_t context;
    uint64_t index;
    int pair;
    double since;  // set by the background
  };
  journal::Ring<Sample> samples{4096};
  journal::Ring<Cycle> cycles{1024};
  journal::Ring<Run> runs{1024};
  journal::Ring<Launch> launches{512};
  // Kernels in flight on the GPU. Begun by the calls, looked at by the background; removed between
  // the last call and the end of the communicator.
  std::unique_ptr<GpuEvents> events;
  std::atomic<bool> late{false};  // the GPU of `events` may be gone

  // The calls to the background: the contexts. They live as long as the hand-over; a call takes the
  // lock only to add one.
  void Add(ContextHandover* context);
  std::vector<ContextHandover*> Contexts() const;
  // Any thread: records an iteration boundary, or the duration of the last call of a kind, for rank
  // 0.
  void Mark(RewardSource source, double now) noexcept;
  bool Report(Collective collective, uint64_t bytes, double seconds) noexcept;

  // The background to the calls. Whether this process still searches the order of calls for
  // iterations.
  std::atomic<bool> wants_pattern{false};
  // When cycles are recorded: on rank 0, as long as they may become the reward.
  std::atomic<CycleUse> cycle_use{CycleUse::kNever};
  // Ranks were found to run different configurations: the next question fails. `stop_text` is
  // written before `diverged` is set with release, and read after it was seen with acquire.
  std::atomic<bool> diverged{false};
  std::string stop_text;

 private:
  mutable pthread_mutex_t list_mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::vector<ContextHandover*> list_;  // guarded by list_mutex_
};

}  // namespace diapason::plugin
