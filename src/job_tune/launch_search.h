#pragma once

#include <optional>
#include <vector>

#include "job_tune/search.h"

namespace diapason::job_tune {

struct LaunchSearchOptions {
  // A configuration that makes an iteration faster by less is not worth a row.
  double margin = 0.01;
  // Logarithms of gains. Launches of one setting differ by a few percent: what is behind the best
  // by `slower` is not tried again, and what is ahead of all others by `ahead` needs no second
  // round.
  double slower = 0.05;
  double ahead = 0.10;
  size_t most_pairs = 4;   // of a context, by the library's own estimates
  size_t most_counts = 3;  // numbers of channels
};

// Looks for the setting that makes the iteration fastest where a setting holds for a whole launch,
// as for calls that are captured in graphs. One context after the other, those with most time
// first, each beside the best of those before: first the pairs of algorithm and protocol that the
// library offers, then fewer channels of the best one.
//
// Launches are grouped in rounds: one of the library's own choice, and one of each candidate, in an
// order that is reversed from round to round. Candidates are compared by the gain over the
// library's choice in the same round. After the first round those that are clearly slower are
// dropped and the best two go on; after the second the best one is taken. Pure: the caller runs the
// launches and passes their times back. Not thread-safe.
class LaunchSearch {
 public:
  explicit LaunchSearch(std::vector<SearchContext> contexts,
                        const LaunchSearchOptions& options = {});

  // What each context runs in the next launch; nothing: the search is over. The same until Learn.
  std::optional<JobSetting> Next() const;
  // How long an iteration took in that launch; 0: it failed, or could not be timed. A candidate
  // that fails is dropped; if the library's own choice fails twice, the context is left to it.
  void Learn(double seconds);
  // There is no time for another launch: what the unfinished round has shown counts as it is.
  void Stop();

  bool over() const { return current_ >= contexts_.size(); }
  size_t current() const { return current_; }  // the context in hand
  size_t launches() const { return launches_; }
  // What is worth verifying: the best of each context that is done, and of the one in hand what
  // seems to be faster.
  JobSetting Candidate() const;
  const std::vector<SearchContext>& contexts() const { return contexts_; }
  // What was tried in a context, the fastest first. Intervals are by what pairs of launches are
  // assumed to differ by (PooledGain::kAssumedSpread): two launches do not show it.
  std::vector<TriedConfig> TriedIn(size_t context) const;

 private:
  struct Arm {
    Config config;
    bool alive = true;
    double seconds = 0;             // in the round in hand
    std::vector<double> log_gains;  // by round
    std::vector<TriedBlock> times;
    double Mean() const;
  };
  enum class Stage { kPairs, kCounts };

  void BeginContext();
  void BeginCounts(const Config& best);
  void BeginRound();
  void EndRound();
  void CountRound();
  void EndStage();
  void EndContext(const Config& chosen);
  // Those alive that were timed, the fastest first.
  std::vector<size_t> Ranked() const;
  Config Winner() const;

  std::vector<SearchContext> contexts_;
  const LaunchSearchOptions options_;
  size_t current_ = 0;
  JobSetting chosen_;                   // by context
  std::vector<std::vector<Arm>> arms_;  // by context
  Stage stage_ = Stage::kPairs;
  int round_ = 0;               // of the stage, from 1 on
  int rounds_begun_ = 0;        // of the context: every other one is reversed
  std::vector<int> order_;      // arms; -1: the library's own choice
  size_t at_ = 0;               // in `order_`
  double default_seconds_ = 0;  // of the round
  int default_failed_ = 0;
  size_t launches_ = 0;
  bool stopped_ = false;
};

}  // namespace diapason::job_tune
