#pragma once

#include <pthread.h>

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agree/epochs.h"
#include "domain/decision.h"
#include "domain/schedule.h"
#include "plugin/abi/relaxed.h"
#include "plugin/learning/run_check.h"

namespace diapason::plugin {

class Reporter;
class ContextExplorer;

// The pairs of algorithm and protocol that a rank can run, one bit each; ranks exchange these.
inline constexpr int kOfferedAlgorithms = 8;
inline constexpr int kOfferedProtocols = 4;
inline constexpr size_t kPairs = size_t{kOfferedAlgorithms} * kOfferedProtocols;
constexpr size_t PairNumber(int algorithm, int protocol) {
  return static_cast<size_t>(algorithm) * kOfferedProtocols + static_cast<size_t>(protocol);
}

// Sources of rewards, best first.
enum class RewardSource : uint8_t { kStep, kReport, kFile, kPattern, kGpu };
inline constexpr int kRewardSources = 5;
std::string_view RewardSourceName(RewardSource source);
// A reward that covers whole iterations, not single calls.
inline bool CoversIterations(RewardSource source) {
  return source == RewardSource::kStep || source == RewardSource::kPattern;
}

// One collective in one size band of one communicator, on this rank.
struct LearningContext {
  LearningContext(Collective asked, int size_band, agree::CellStore* store,
                  agree::EpochLog::Options options);
  ~LearningContext();

  const Collective collective;
  const int band;
  const std::string prefix;

  // Used by the thread that asks. `ready` is the answer for calls from index ready.first on.
  struct Ready {
    Config config;
    Reason reason = Reason::kLearned;
    bool lost = false;  // the choice of the other ranks cannot be known
    bool counts = false;
    uint32_t epoch = 0;
    uint64_t first = 0;
    uint64_t length = 0;
  };
  Ready ready;
  Ready frozen;  // for calls that never explore: captured ones, and groups that are not counted
  Relaxed<uint64_t> committed;  // calls that were launched
  Relaxed<uint32_t> pending;    // questions since
  agree::KnownCells known;      // filled by the learning thread
  agree::EpochLog log;
  bool offer_made = false;
  int64_t told_epoch = -1;
  bool tracking = false;
  bool timing = false;

  // Shared by the asking thread and the learning thread.
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::vector<agree::EpochLog::Epoch> entered;  // guarded by mutex
  bool offer_ready = false;                     // guarded by mutex, as are the next two
  uint64_t offer = 0;
  std::vector<float> costs;  // the library's cost table at the first question
  struct Mark {
    uint64_t calls = 0;  // made before it
    double time = 0;
    RewardSource source = RewardSource::kStep;
  };
  std::deque<Mark> marks;     // guarded by mutex
  std::deque<Mark> reported;  // guarded by mutex: `time` is the duration of one call
  Relaxed<int>
      ran_channels[kOfferedAlgorithms]
                  [kOfferedProtocols];  // what the library actually used, by algorithm and protocol
  Relaxed<int> default_algorithm{-1};
  Relaxed<int> default_protocol{-1};

  // Used by the learning thread only.
  bool offer_posted = false;
  double next_read_ahead = 0;
  double read_ahead_pause = 0;
  RunSamples runs;
  agree::EpochLog::Epoch newest;
  std::unique_ptr<Reporter> reporter;
  std::unique_ptr<ContextExplorer> explorer;  // on rank 0
};

}  // namespace diapason::plugin
