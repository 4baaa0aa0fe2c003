#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/schedule.h"
#include "domain/vocabulary.h"
#include "learn/learner.h"

namespace diapason::learn {

// Collects, on one rank, the times of a context's calls, by epoch and segment. A sample covers
// calls [first, end): one call, or all calls of an iteration. It counts only if all of them ran in
// one counted segment.
class SampleBook {
 public:
  // Epochs are opened in order. At most `kept` are open; the oldest is dropped.
  explicit SampleBook(size_t kept = 16);
  void Open(uint32_t epoch, uint64_t start, const Schedule& schedule);
  // From now on a sample that begins with a change of configuration does not count, unless it is
  // the only one of its segment, which shows what is far slower. Ranks end a call at different
  // times, by offsets that depend on the configuration: the clock of one rank shows the first call
  // after a change too short or too long by their difference, up to a third. Where all ranks are
  // timed, the slowest one counts, and the difference hardly matters.
  void SkipChanges(bool skip) { skips_changes_ = skip; }
  // False: it does not belong to one counted segment, or is skipped.
  bool Credit(uint64_t first, uint64_t end, double seconds);
  // The samples of an epoch so far; nullopt: not open.
  std::optional<std::vector<std::vector<double>>> Samples(uint32_t epoch) const;
  // Whether every counted segment has all its samples (one per `calls_per_sample` calls).
  bool Complete(uint32_t epoch, uint64_t calls_per_sample) const;
  void Close(uint32_t epoch);
  std::vector<uint32_t> open() const;

 private:
  struct Page {
    uint32_t epoch = 0;
    uint64_t start = 0;
    Schedule schedule;
    bool begins_with_change = false;
    std::vector<std::vector<double>> samples;
  };
  static bool IsChange(const Page& page, size_t segment);

  std::deque<Page> pages_;
  size_t kept_;
  Config last_;  // of the epoch that was opened last
  bool skips_changes_ = false;
};

// One rank's results of an epoch: the lower quartile of every segment's samples. With four or more
// samples, the first is left out: it overlaps the previous segment. With fewer, spikes are left
// out: samples of more than 2.5 times the fastest one.
std::vector<SegmentResult> BlockResults(const std::vector<std::vector<double>>& samples);
// The text form sent to rank 0. Parsing validates it fully.
std::string ResultsText(const std::vector<SegmentResult>& results);
Result<std::vector<SegmentResult>> ParseResults(std::string_view text, size_t segments);
// Combines the results of all ranks: for each segment the slowest rank; none if a rank has none.
std::vector<SegmentResult> SlowestOf(const std::vector<std::vector<SegmentResult>>& ranks);
// The skew of the ranks: the largest ratio of slowest to fastest over the segments; 1: none.
double SkewOf(const std::vector<std::vector<SegmentResult>>& ranks);

// One line of a reward file: "collType,nBytes,nNodes,nRanks,latency_ms[,call[,calls]]".
struct RewardLine {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  int64_t nodes = 0;
  int64_t ranks = 0;
  double seconds = 0;
  // The number of the last call that it covers, among the calls of its collective and size band in
  // the communicator, from 1 on; 0: it has none.
  uint64_t call = 0;
  uint64_t calls = 1;  // how many it covers
};
Result<RewardLine> ParseRewardLine(std::string_view line);

// Splits the pieces read from a growing file into lines; a line is complete with its line end. A
// line longer than kLongestRewardLine is skipped and counted as garbage.
inline constexpr size_t kLongestRewardLine = 4096;
class RewardLines {
 public:
  // The lines that this piece completes.
  std::vector<RewardLine> Feed(std::string_view piece);
  // The file was truncated or replaced: drops an unfinished line.
  void Restart();
  uint64_t garbage() const { return garbage_; }

 private:
  std::string partial_;
  bool skipping_ = false;
  uint64_t garbage_ = 0;
};

}  // namespace diapason::learn
