#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agree/epochs.h"

namespace diapason::plugin {

// The promise that all ranks run the same, checked while the job runs. Of every epoch some calls
// are kept as the library told them: the number of the call as this plugin counts it, the number
// that the library itself gave it, and what really ran. Rank 0 leaves its list beside the cells;
// the others compare theirs with it. Lists may have gaps: only what both have is compared.
//
// Runs on the background thread only.
struct RunSample {
  uint64_t index = 0;     // as learning counts the context's calls
  uint64_t sequence = 0;  // as the library counts the collective's calls
  int algorithm = -1;
  int protocol = -1;
  int channels = 0;
  friend bool operator==(const RunSample&, const RunSample&) = default;
};

// Whether a call is one of those that are kept; the same on every rank. `offset` counts from the
// beginning of its segment.
inline bool KeepsSample(uint64_t index, uint64_t offset) { return offset < 2 || index % 16 == 0; }

inline constexpr size_t kMostRunSamples = 32;  // of an epoch

std::string RunSamplesText(const std::vector<RunSample>& samples);
// What comes back is hostile; nullopt: it cannot be read.
std::optional<std::vector<RunSample>> ParseRunSamples(std::string_view text);

struct RunDifference {
  enum class Kind {
    kNone,
    kClocks,  // the ranks count calls differently, but have run the same so far
    kRuns,    // one call ran differently
  };
  Kind kind = Kind::kNone;
  std::string text;  // for people
};
RunDifference CompareRuns(const std::vector<RunSample>& mine, const std::vector<RunSample>& theirs);

// The samples of one context, by epoch.
class RunSamples {
 public:
  void Entered(const agree::EpochLog::Epoch& epoch);
  void Add(const RunSample& sample);

  struct Epoch {
    uint32_t number = 0;
    uint64_t start = 0;
    uint64_t end = 0;
    std::vector<RunSample> samples;
    double next_look = 0;  // when rank 0's list is looked for next
    int looks = 0;
  };
  // Epochs that are over and have samples, oldest first; the caller removes what it is done with.
  std::deque<Epoch>& over() { return over_; }

 private:
  std::deque<Epoch> open_;  // the newest one, and one before whose last runs may still come
  std::deque<Epoch> over_;
};

}  // namespace diapason::plugin
