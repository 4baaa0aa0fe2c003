#include "env_tune/experiment.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/random.h"
#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"

namespace diapason::env_tune {
namespace {

constexpr uint64_t kValidationStream = uint64_t{1} << 32;
constexpr int kMostSpoilt = 3;
constexpr int kBlocksForLimits = 3;
constexpr int kBlocksForInterval = 6;  // fewer have no interval of 95 %

// The largest p-value with which a comparison goes on after so many blocks. A setting that changes
// nothing is given up after five or six blocks in the mean; one whose gain is as large as the noise
// of a run almost never.
double HopelessAbove(int blocks) {
  if (blocks < 3) return 1;
  if (blocks < 4) return 0.9;
  if (blocks < 6) return 0.5;
  if (blocks < 8) return 0.35;
  if (blocks < 10) return 0.2;
  if (blocks < 12) return 0.12;
  return 0.08;
}

std::vector<double> Pick(const std::vector<RunFigure>& runs, double RunFigure::*field) {
  std::vector<double> values;
  for (const RunFigure& run : runs) {
    if (run.*field > 0) values.push_back(run.*field);
  }
  return values;
}

}  // namespace

std::string_view PhaseName(ExperimentPhase phase) {
  static constexpr std::string_view kNames[] = {"warm-up", "baseline", "compare", "validate"};
  return kNames[static_cast<size_t>(phase)];
}

std::string_view VerdictName(KnobVerdict verdict) {
  static constexpr std::string_view kNames[] = {"not tried", "kept",   "no gain",
                                                "too small", "failed", "too costly"};
  return kNames[static_cast<size_t>(verdict)];
}

Experiment::Experiment(const ExperimentOptions& options, std::vector<KnobValue> candidates)
    : options_(options), candidates_(std::move(candidates)), comparisons_(candidates_.size()) {
  // A share that no number of blocks can reach would be a comparison for nothing.
  const double share =
      options_.alpha / static_cast<double>(std::max<size_t>(1, candidates_.size()));
  options_.most_blocks = std::clamp(options_.most_blocks, 4, SignFlipTest::kMostBlocks);
  while (options_.most_blocks < SignFlipTest::kMostBlocks &&
         SignFlipTest::LeastBlocks(share, options_.most_blocks) + 2 > options_.most_blocks) {
    ++options_.most_blocks;
  }
  options_.validation_blocks = std::clamp(options_.validation_blocks, 5, SignFlipTest::kMostBlocks);
  options_.baseline_runs = std::max(options_.baseline_runs, 2);
  if (options_.warm_ups <= 0) phase_ = ExperimentPhase::kBaseline;
}

bool Experiment::TreatedAt(uint64_t stream, int block, int slot) const {
  const bool treated_first =
      (CounterRandom(options_.seed, stream).Bits(static_cast<uint64_t>(block)) & 1) != 0;
  const bool first_arm = options_.abba ? slot == 0 || slot == 3 : slot == 0;
  return first_arm == treated_first;
}

std::optional<Step> Experiment::Next() const {
  if (over_ || !broken_.empty()) return std::nullopt;
  Step step;
  step.phase = phase_;
  if (phase_ == ExperimentPhase::kWarmUp || phase_ == ExperimentPhase::kBaseline) {
    step.block =
        phase_ == ExperimentPhase::kWarmUp ? warm_ups_ : static_cast<int>(baseline_.size());
    return step;
  }
  step.candidate = phase_ == ExperimentPhase::kCompare ? candidate_ : -1;
  step.block = attempts_;
  step.slot = static_cast<int>(block_.size());
  const uint64_t stream =
      phase_ == ExperimentPhase::kCompare ? static_cast<uint64_t>(candidate_) : kValidationStream;
  step.treated = TreatedAt(stream, attempts_, step.slot);
  if (phase_ == ExperimentPhase::kCompare) {
    step.settings = kept_;
    const KnobValue& candidate = candidates_[static_cast<size_t>(candidate_)];
    if (step.treated) step.settings[candidate.name] = candidate.value;
  } else if (step.treated) {
    step.settings = kept_;
  }
  return step;
}

void Experiment::Tell(const RunFigure& figure) {
  const std::optional<Step> step = Next();
  assert(step.has_value());
  ++runs_;
  const bool usable = figure.fine && figure.value > 0 && std::isfinite(figure.value);
  if (phase_ == ExperimentPhase::kWarmUp || phase_ == ExperimentPhase::kBaseline) {
    if (!usable) {
      broken_ = figure.why.empty() ? "it gave no figure" : figure.why;
      return;
    }
    if (phase_ == ExperimentPhase::kWarmUp) {
      if (++warm_ups_ >= options_.warm_ups) phase_ = ExperimentPhase::kBaseline;
      return;
    }
    baseline_.push_back(figure);
    default_runs_.push_back(figure);
    if (static_cast<int>(baseline_.size()) >= options_.baseline_runs) NextCandidate();
    return;
  }
  if (usable) {
    block_.push_back(figure);
    (step->treated ? treated_ : untreated_).push_back(figure);
    if (step->settings.empty()) default_runs_.push_back(figure);
    if (static_cast<int>(block_.size()) == RunsOfBlock()) FinishBlock();
    return;
  }
  block_.clear();
  ++attempts_;
  if (!step->treated) {
    // Not the candidate's fault: the block is done again, but not for ever.
    if (++spoilt_ > kMostSpoilt) {
      broken_ = "it failed repeatedly with settings that had worked: " + figure.why;
    }
    return;
  }
  if (phase_ == ExperimentPhase::kValidate) {
    validation_.failed = figure.why.empty() ? "a run gave no figure" : figure.why;
    over_ = true;
    return;
  }
  KnobComparison& comparison = comparisons_[static_cast<size_t>(candidate_)];
  comparison.why = figure.why;
  Decide(&comparison, KnobVerdict::kFailed);
}

double Experiment::LogGain() const {
  const uint64_t stream =
      phase_ == ExperimentPhase::kCompare ? static_cast<uint64_t>(candidate_) : kValidationStream;
  double gain = 0;
  for (size_t i = 0; i < block_.size(); ++i) {
    const double value = std::log(block_[i].value);
    gain += TreatedAt(stream, attempts_, static_cast<int>(i)) ? -value : value;
  }
  gain /= static_cast<double>(RunsOfBlock()) / 2;
  return options_.higher ? -gain : gain;
}

void Experiment::FinishBlock() {
  const double gain = LogGain();
  block_.clear();
  ++attempts_;
  if (phase_ == ExperimentPhase::kValidate) {
    validation_.gains.push_back(gain);
    if (static_cast<int>(validation_.gains.size()) == options_.validation_blocks) {
      FinishValidation();
    }
    return;
  }
  KnobComparison& comparison = comparisons_[static_cast<size_t>(candidate_)];
  const bool rejects = test_->Add(gain);
  comparison.gains = test_->gains();
  comparison.p = test_->p();
  comparison.shift = EstimateShift(comparison.gains);
  if (test_->blocks() >= kBlocksForLimits && BreaksLimit(&comparison.why)) {
    Decide(&comparison, KnobVerdict::kTooCostly);
    return;
  }
  if (rejects) {
    // The share of a test that rejected is free again, whatever becomes of the candidate.
    carried_ = comparison.alpha;
    const bool enough = std::expm1(comparison.shift.estimate) >= options_.min_gain;
    Decide(&comparison, enough ? KnobVerdict::kKept : KnobVerdict::kTooSmall);
    return;
  }
  Judge(&comparison);
}

void Experiment::Judge(KnobComparison* comparison) {
  const int blocks = test_->blocks();
  const bool small =
      blocks >= kBlocksForInterval && std::expm1(comparison->shift.high) < options_.min_gain;
  if (small || test_->p() > HopelessAbove(blocks) || blocks == options_.most_blocks) {
    Decide(comparison, KnobVerdict::kNoGain);
  }
}

bool Experiment::Breaks(const CostLimit& limit, const std::vector<double>& with,
                        const std::vector<double>& without, const char* what,
                        std::string* why) const {
  if (limit.kind == CostLimit::Kind::kNone || with.empty() || without.empty()) return false;
  const double costs = Median(with);
  const double before = Median(without);
  const bool relative = limit.kind == CostLimit::Kind::kRelative;
  const double most = relative ? before * (1 + limit.value) : limit.value;
  if (costs <= most) return false;
  *why = std::string(what) + Format(" {:+.1f} % against the default", (costs / before - 1) * 100) +
         (relative ? Format(", the limit is +{:.1f} %", limit.value * 100) : ", over the limit");
  return true;
}

bool Experiment::BreaksLimit(std::string* why) const {
  return Breaks(options_.max_cpu, Pick(treated_, &RunFigure::cpu_s),
                Pick(default_runs_, &RunFigure::cpu_s), "CPU time", why) ||
         Breaks(options_.max_memory, Pick(treated_, &RunFigure::memory),
                Pick(default_runs_, &RunFigure::memory), "memory", why);
}

void Experiment::Decide(KnobComparison* comparison, KnobVerdict verdict) {
  comparison->verdict = verdict;
  if (verdict == KnobVerdict::kKept) {
    const KnobValue& candidate = candidates_[static_cast<size_t>(candidate_)];
    kept_[candidate.name] = candidate.value;
  }
  NextCandidate();
}

void Experiment::NextCandidate() {
  phase_ = ExperimentPhase::kCompare;
  ++candidate_;
  attempts_ = 0;
  block_.clear();
  treated_.clear();
  untreated_.clear();
  if (candidate_ >= static_cast<int>(candidates_.size())) {
    BeginValidation();
    return;
  }
  KnobComparison& comparison = comparisons_[static_cast<size_t>(candidate_)];
  comparison.alpha = options_.alpha / static_cast<double>(candidates_.size()) + carried_;
  comparison.against = kept_;
  carried_ = 0;
  test_.emplace(comparison.alpha, options_.most_blocks);
}

void Experiment::StopComparing() {
  if (phase_ == ExperimentPhase::kValidate || over_) return;
  candidate_ = static_cast<int>(candidates_.size());
  BeginValidation();
}

void Experiment::BeginValidation() {
  phase_ = ExperimentPhase::kValidate;
  attempts_ = 0;
  block_.clear();
  treated_.clear();
  untreated_.clear();
  over_ = kept_.empty();
}

int Experiment::RunsForValidation() const {
  if (over_) return 0;
  const int all = options_.validation_blocks * RunsOfBlock();
  if (phase_ != ExperimentPhase::kValidate) return all;
  return all - static_cast<int>(validation_.gains.size()) * RunsOfBlock() -
         static_cast<int>(block_.size());
}

int Experiment::MostRunsLeft() const {
  if (over_ || !broken_.empty()) return 0;
  const int size = RunsOfBlock();
  if (phase_ == ExperimentPhase::kValidate) return RunsForValidation();
  const int all = static_cast<int>(candidates_.size());
  int left = RunsForValidation();
  if (phase_ != ExperimentPhase::kCompare) {
    left += options_.warm_ups - warm_ups_ + options_.baseline_runs -
            static_cast<int>(baseline_.size()) + all * options_.most_blocks * size;
  } else {
    left += (all - candidate_) * options_.most_blocks * size - test_->blocks() * size -
            static_cast<int>(block_.size());
  }
  return left;
}

}  // namespace diapason::env_tune
