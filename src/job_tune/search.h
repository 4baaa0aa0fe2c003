#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "job_tune/blocks.h"
#include "learn/learner.h"

namespace diapason::job_tune {

// A context and what can be tried in it.
struct SearchContext {
  JobContext context;
  // Pairs of algorithm and protocol that all ranks offer, with the library's own estimates of their
  // times as multiples of its choice's; the library's own pair is among them.
  std::vector<learn::ArmConfig> offered;
  Config by_default;       // the pair that runs by itself, and its channels; default: not known
  int least_channels = 1;  // fewer are not tried
  bool channel_counts = true;
};

struct SearchOptions {
  uint64_t unit = 8;  // blocks are multiples of so many iterations
  // A configuration that makes an iteration faster by less is not worth a row.
  double margin = 0.01;
  uint64_t seed = 1;
};

// Looks for the setting that makes the iteration fastest: one context after the other, those with
// most time first, each beside the best known configurations of the others (coordinate descent).
// Within a context it compares by blocks of iterations, as learning does (learn::Learner), without
// a budget: the pairs on offer first, then fewer channels of those near the best. Pure: the caller
// runs the trials and passes the results back. Not thread-safe.
class Search {
 public:
  Search(std::vector<SearchContext> contexts, const SearchOptions& options);

  struct Trial {
    JobSetting setting;
    uint64_t iterations = 0;
  };
  // Settings to run one after the other; empty: the search is over. Asked again before Learn or
  // Lost, it gives the next ones, and those before are lost.
  std::vector<Trial> Next();
  // The results of the trials of the last Next, one each (ResultsOf). `begun`: whether the job made
  // a call with the trial's configuration; empty: it did in all.
  void Learn(const std::vector<learn::SegmentResult>& results, const std::vector<bool>& begun = {});
  void Lost();
  // Ends the search in the context in hand; what is most likely faster there stays in use.
  void GoOn();
  // With how many channels a pair ran when it was asked for without a count.
  void Ran(size_t context, const Config& asked, const Config& ran);

  bool over() const { return current_ >= contexts_.size(); }
  // A context was left before its evidence was complete.
  bool gave_up() const;
  size_t current() const { return current_; }  // the context in hand
  // What is best by what is known now.
  JobSetting best() const;
  // What is worth verifying: best(), and where the evidence was not enough for a context in the
  // time there was, what is most likely faster there.
  JobSetting Candidate() const;
  const std::vector<SearchContext>& contexts() const { return contexts_; }
  // What was tried in a context, the fastest first. The library's own is not among them. What gave
  // no time has no gain.
  std::vector<TriedConfig> TriedIn(size_t context) const;
  // Blocks that were measured so far.
  size_t blocks() const { return blocks_; }

 private:
  void Begin();
  void AddFewerChannels();
  struct Failures {
    int unmeasured = 0;  // blocks in a row that gave no time
    int never_ran = 0;   // of them, those in which the job made no such call
  };
  Failures& FailuresOf(const Config& config);
  Config MostLikely(size_t context) const;
  void KeepBlock(const Config& config, double seconds, double default_seconds);

  std::vector<SearchContext> contexts_;
  const SearchOptions options_;
  size_t current_ = 0;
  uint32_t epoch_ = 0;
  std::vector<Segment> issued_;
  std::vector<std::unique_ptr<learn::Learner>> learners_;  // by context; those begun
  std::vector<std::optional<Config>> left_;  // by context: what stays where GoOn ended the search
  std::map<std::pair<size_t, std::pair<int, int>>, int> own_channels_;
  std::vector<std::pair<int, int>> channels_added_;  // pairs, of the context in hand
  // Of the configurations of the context in hand.
  std::vector<std::pair<Config, Failures>> failures_;
  // Blocks that were measured, by context and configuration.
  struct Measured {
    Config config;
    size_t blocks = 0;
    std::vector<TriedBlock> beside_default;
  };
  std::vector<std::vector<Measured>> measured_;
  size_t blocks_ = 0;
};

}  // namespace diapason::job_tune
