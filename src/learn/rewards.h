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

// Collects, on one rank, what the calls of a context took, by epoch and segment. A sample belongs
// to calls [first, end): one call, or all calls of an iteration. It is credited only when all of
// them ran in one segment that counts.
class SampleBook {
 public:
  // Epochs are opened in order. At most `kept` are open; the oldest is dropped.
  explicit SampleBook(size_t kept = 16);
  void Open(uint32_t epoch, uint64_t start, const Schedule& schedule);
  // False: it could not be credited to one segment.
  bool Credit(uint64_t first, uint64_t end, double seconds);
  // The samples of an epoch so far; nullopt: not open.
  std::optional<std::vector<std::vector<double>>> Samples(uint32_t epoch) const;
  // Whether every counted segment has as many samples as it can have (`calls_per_sample` calls make
  // one).
  bool Complete(uint32_t epoch, uint64_t calls_per_sample) const;
  void Close(uint32_t epoch);
  std::vector<uint32_t> open() const;

 private:
  struct Page {
    uint32_t epoch = 0;
    uint64_t start = 0;
    Schedule schedule;
    std::vector<std::vector<double>> samples;
  };
  std::deque<Page> pages_;
  size_t kept_;
};

// One rank's results of an epoch: the lower quartile of every segment's samples. The first sample
// of a segment with four or more is left out: it still overlaps what ran before.
std::vector<SegmentResult> BlockResults(const std::vector<std::vector<double>>& samples);
// As they travel to rank 0. What comes back is hostile.
std::string ResultsText(const std::vector<SegmentResult>& results);
Result<std::vector<SegmentResult>> ParseResults(std::string_view text, size_t segments);
// All ranks' results as one: for each segment the slowest rank; nothing where a rank has nothing.
std::vector<SegmentResult> SlowestOf(const std::vector<std::vector<SegmentResult>>& ranks);
// How far apart the ranks are: the largest ratio of slowest to fastest over the segments; 1: none.
double SkewOf(const std::vector<std::vector<SegmentResult>>& ranks);

// One line of a reward file: "collType,nBytes,nNodes,nRanks,latency_ms".
struct RewardLine {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  int64_t nodes = 0;
  int64_t ranks = 0;
  double seconds = 0;
};
Result<RewardLine> ParseRewardLine(std::string_view line);

// Turns what was read from a growing file, in pieces of any size, into lines; a line is complete
// with its line end. A line longer than kLongestRewardLine is skipped and counted as garbage.
inline constexpr size_t kLongestRewardLine = 4096;
class RewardLines {
 public:
  // The lines that this piece completes.
  std::vector<RewardLine> Feed(std::string_view piece);
  // The file was truncated or replaced: an unfinished line is gone.
  void Restart();
  uint64_t garbage() const { return garbage_; }

 private:
  std::string partial_;
  bool skipping_ = false;
  uint64_t garbage_ = 0;
};

// Reward lines do not say which call they are about. When a program writes one for every n calls of
// a context, line k is about calls [k n, (k+1) n): this finds n and tells. It stays silent until
// the counts fit, and starts anew when they stop fitting.
class LineMatcher {
 public:
  // `calls` of the context have been made and `lines` lines have been read since the start. The
  // calls the newest line is about, or nullopt: not known.
  struct Range {
    uint64_t first = 0;
    uint64_t end = 0;
  };
  // Called for every line, in order; `calls` as of when the line was read.
  std::optional<Range> Line(uint64_t calls);
  uint64_t calls_per_line() const { return stride_; }

 private:
  uint64_t lines_ = 0;
  uint64_t stride_ = 0;
  uint64_t guess_ = 0;
  uint64_t agreeing_ = 0;  // lines in a row that fit the guess
  uint64_t lead_ = 0;      // of the calls over the first of them
};

}  // namespace diapason::learn
