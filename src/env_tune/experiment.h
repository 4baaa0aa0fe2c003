#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/sign_flip.h"

namespace diapason::env_tune {

// Environment variables on top of what the user has set.
using EnvVars = std::map<std::string, std::string>;

// One value of one variable, to be tried.
struct KnobValue {
  std::string name;
  std::string value;
  std::string why;  // for people; may be empty
};

// A bound on what a setting may cost, against the median of the default's runs.
struct CostLimit {
  enum class Kind : uint8_t { kNone, kRelative, kAbsolute };
  Kind kind = Kind::kNone;
  double value = 0;  // 0.1 for "+10%"; seconds of CPU time or bytes
};

struct ExperimentOptions {
  double alpha = 0.05;     // the chance of ever keeping a setting that changes nothing
  double min_gain = 0.01;  // a gain below this is not worth a setting
  bool higher = false;     // whether a larger figure is the better one
  int warm_ups = 1;        // runs whose figures do not count
  int baseline_runs = 5;
  int most_blocks = 16;        // of one comparison; 4 to SignFlipTest::kMostBlocks
  int validation_blocks = 10;  // at least 5: fewer cannot be significant
  // Runs of a block: a pair in an order drawn by lot, or ABBA or BAAB. The second cancels a linear
  // drift within the block, the first has twice as many coins for as many runs.
  bool abba = false;
  uint64_t seed = 1;
  CostLimit max_cpu;
  CostLimit max_memory;
};

// What one run gave.
struct RunFigure {
  bool fine = false;
  double value = 0;   // more than zero where fine
  double cpu_s = 0;   // of the whole process tree; 0: not known
  double memory = 0;  // bytes of its largest process; 0: not known
  std::string why;    // why it is not fine
};

enum class ExperimentPhase : uint8_t { kWarmUp, kBaseline, kCompare, kValidate };
std::string_view PhaseName(ExperimentPhase phase);

// What to run next.
struct Step {
  ExperimentPhase phase = ExperimentPhase::kWarmUp;
  int candidate = -1;  // kCompare: its number
  int block = 0;
  int slot = 0;          // within the block
  bool treated = false;  // with the candidate; validation: with the final set
  EnvVars settings;
};

enum class KnobVerdict : uint8_t {
  kNotTried,   // the budget ended before it, or while it was compared
  kKept,       // better, significantly, and by the least gain or more
  kNoGain,     // not shown to be better
  kTooSmall,   // better, but by less than the least gain
  kFailed,     // the command failed with it
  kTooCostly,  // it breaks a limit on CPU time or memory
};
std::string_view VerdictName(KnobVerdict verdict);

struct KnobComparison {
  KnobVerdict verdict = KnobVerdict::kNotTried;
  double alpha = 0;           // its share
  std::vector<double> gains;  // log gains of its blocks
  double p = 1;               // of this many blocks, for themselves
  ShiftEstimate shift;        // of the log gains; zeros without blocks
  std::string why;            // of kFailed and kTooCostly
  EnvVars against;            // what it was compared with
};

// The final set against the default, on runs that had no part in choosing it.
struct Validation {
  bool complete = false;
  bool confirmed = false;  // significant at alpha by itself, and by the least gain or more
  std::string failed;      // why a run of the set failed; "" for none did
  std::vector<double> gains;
  double p = 1;
  ShiftEstimate shift;
  // Stability: medians of the second half of the runs over those of the first, as log ratios, and
  // the robust spread (share of the median) of each side.
  double drift_tuned = 0;
  double drift_default = 0;
  double spread_tuned = 0;
  double spread_default = 0;
  bool drifts = false;        // the tuned runs drift, and the default's do not
  bool spread_worse = false;  // more than twice the default's
  bool stable() const { return complete && !drifts && !spread_worse; }
};

// Which settings make a command better: an experiment. It is told results and says what to run
// next; it knows no clock and starts nothing, so that it can be simulated and replayed. The same
// options and results give the same steps.
//
// Candidates are compared one at a time, in the order given, with what was kept so far (at first:
// nothing, the user's own environment), in blocks whose order is drawn by lot. Errors are bounded
// in two ways that do not rest on each other:
//
// - Every one of the m candidates gets alpha / m; one that is kept leaves its share to the next
//   (fallback). Given all that happened before it, a candidate that changes nothing is kept with at
//   most its share's probability, and until the first mistake the shares of those that change
//   nothing sum to at most alpha: the chance that the kept set holds any of them is at most alpha,
//   whichever of the others do work and however the order is chosen. No share is ever taken back
//   from a candidate that was given up early.
// - The set as a whole is then compared with the default on fresh runs, one test at level alpha.
//   Only if that confirms it, and the gain is at least the least one, a gain is claimed. This holds
//   even if something were wrong with the choice.
//
// A comparison stops early when it has no prospects: the p-value is large for the number of blocks,
// or the interval of the gain lies below the least gain. That can only lower the error rates.
class Experiment {
 public:
  Experiment(const ExperimentOptions& options, std::vector<KnobValue> candidates);

  // The next run; nothing when the experiment is over. Does not change anything.
  std::optional<Step> Next() const;
  // The result of that run. REQUIRES: Next() has one.
  void Tell(const RunFigure& figure);
  // No more comparisons: on to the validation of what was kept.
  void StopComparing();

  // Set when the command fails without anything that is tried: nothing can be learned.
  const std::string& broken() const { return broken_; }

  const ExperimentOptions& options() const { return options_; }
  const std::vector<KnobValue>& candidates() const { return candidates_; }
  const std::vector<KnobComparison>& comparisons() const { return comparisons_; }
  const std::vector<RunFigure>& baseline() const { return baseline_; }
  const Validation& validation() const { return validation_; }
  const EnvVars& kept() const { return kept_; }
  // What to use: what was kept where that is confirmed, else nothing.
  EnvVars Final() const { return validation_.confirmed ? kept_ : EnvVars(); }
  int runs() const { return runs_; }

  // The runs that the validation needs, those it has had already taken off.
  int RunsForValidation() const;
  // The most runs that can still come.
  int MostRunsLeft() const;
  // Relative noise of one run, from differences within blocks or, before there are any, from the
  // baseline; 0: not known.
  double Noise() const;
  // The gain a comparison of this experiment finds in four of five cases, at a noise.
  double Detectable(double noise) const;

 private:
  int RunsOfBlock() const { return options_.abba ? 4 : 2; }
  bool TreatedAt(uint64_t stream, int block, int slot) const;
  double LogGain() const;
  void FinishBlock();
  void Judge(KnobComparison* comparison);
  bool BreaksLimit(std::string* why) const;
  bool Breaks(const CostLimit& limit, const std::vector<double>& with,
              const std::vector<double>& without, const char* what, std::string* why) const;
  void Decide(KnobComparison* comparison, KnobVerdict verdict);
  void FinishValidation();
  void NextCandidate();
  void BeginValidation();

  ExperimentOptions options_;
  std::vector<KnobValue> candidates_;
  std::vector<KnobComparison> comparisons_;
  std::vector<RunFigure> baseline_;
  Validation validation_;
  EnvVars kept_;
  std::string broken_;
  int runs_ = 0;

  ExperimentPhase phase_ = ExperimentPhase::kWarmUp;
  bool over_ = false;
  int warm_ups_ = 0;
  int candidate_ = -1;
  double carried_ = 0;  // alpha that a kept candidate left
  std::optional<SignFlipTest> test_;
  int attempts_ = 0;                // blocks begun, with those that had to be repeated
  int spoilt_ = 0;                  // blocks that failed without the candidate
  std::vector<RunFigure> block_;    // runs of the present block
  std::vector<RunFigure> treated_;  // of the present comparison or validation
  std::vector<RunFigure> untreated_;
  std::vector<RunFigure> default_runs_;  // all runs without any setting
};

}  // namespace diapason::env_tune
