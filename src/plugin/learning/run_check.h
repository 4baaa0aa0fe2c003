#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agree/epochs.h"

namespace diapason::plugin {

// Checks while the job runs that all ranks run the same configurations. Some calls of every epoch
// are kept as samples: the call's number as this plugin counts it, the library's sequence number,
// and the configuration that ran. Rank 0 writes its list into the store; the other ranks compare
// theirs with it. Lists may have gaps: only calls in both lists are compared.
//
// Used by the learning thread only.
struct RunSample {
  uint64_t index = 0;     // as learning counts the context's calls
  uint64_t sequence = 0;  // as the library counts the collective's calls
  int algorithm = -1;
  int protocol = -1;
  int channels = 0;
  friend bool operator==(const RunSample&, const RunSample&) = default;
};

// Whether a call is sampled; the same on every rank. `offset` is relative to its segment.
inline bool KeepsSample(uint64_t index, uint64_t offset) { return offset < 2 || index % 16 == 0; }

inline constexpr size_t kMostRunSamples = 32;  // of an epoch

std::string RunSamplesText(const std::vector<RunSample>& samples);
// Validates the text, which comes from another process; nullopt: it cannot be parsed.
std::optional<std::vector<RunSample>> ParseRunSamples(std::string_view text);

struct RunDifference {
  enum class Kind {
    kNone,
    kClocks,  // the ranks count calls differently, but ran the same configurations so far
    kRuns,    // one call ran differently
  };
  Kind kind = Kind::kNone;
  std::string text;  // for the user
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
    double next_look = 0;  // when to look for rank 0's list next
    int looks = 0;
  };
  // Finished epochs with samples, oldest first; the caller removes the ones it has processed.
  std::deque<Epoch>& over() { return over_; }

 private:
  // The newest epoch, and the previous one while its last runs may still arrive.
  std::deque<Epoch> open_;
  std::deque<Epoch> over_;
};

}  // namespace diapason::plugin
