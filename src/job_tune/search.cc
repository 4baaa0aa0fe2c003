#include "job_tune/search.h"

#include <algorithm>
#include <cmath>

#include "base/stats.h"
#include "domain/schedule.h"

namespace diapason::job_tune {
namespace {

// Pairs within this factor of the best are tried with fewer channels, too: in an iteration the
// difference between two pairs is diluted by compute.
constexpr double kNearBest = 1.3;
// No share of the time is too much: this is a run for tuning.
constexpr double kUnlimited = 1e6;
// A configuration that ran and whose blocks gave no time so often is far slower than the others.
constexpr int kMostUnmeasured = 3;
// One that never ran in so many blocks, each twice as long as the one before, cannot run. Fewer do
// not show it: on a busy machine the ranks follow late.
constexpr int kMostNeverRan = 6;
constexpr double kFarSlower = 20;

std::pair<int, int> PairOf(const Config& config) { return {config.algorithm, config.protocol}; }

}  // namespace

Search::Search(std::vector<SearchContext> contexts, const SearchOptions& options)
    : contexts_(std::move(contexts)),
      options_(options),
      learners_(contexts_.size()),
      left_(contexts_.size()),
      measured_(contexts_.size()) {
  if (!over()) Begin();
}

void Search::Begin() {
  const SearchContext& context = contexts_[current_];
  learn::LearnOptions how;
  how.margin = options_.margin;
  how.budget = kUnlimited;
  how.unit = options_.unit;
  how.seed = options_.seed + current_;
  std::vector<learn::ArmConfig> arms;
  for (const learn::ArmConfig& one : context.offered) {
    if (PairOf(one.config) != PairOf(context.by_default)) arms.push_back(one);
  }
  channels_added_.clear();
  failures_.clear();
  learners_[current_] = learn::MakeLearner(how, Config(), std::move(arms));
  if (!context.by_default.IsDefault()) {
    own_channels_[{current_, PairOf(context.by_default)}] = context.by_default.channels;
  }
  AddFewerChannels();
}

std::vector<Search::Trial> Search::Next() {
  if (!issued_.empty()) Lost();
  while (!over()) {
    learn::Learner& learner = *learners_[current_];
    const Schedule schedule = learner.Next(++epoch_);
    if (learner.settled()) {
      learner.Lost(epoch_);
      ++current_;
      if (!over()) Begin();
      continue;
    }
    issued_ = schedule.segments;
    const JobSetting base = best();
    std::vector<Trial> trials;
    for (const Segment& segment : issued_) {
      Trial trial{base, segment.calls};
      trial.setting[current_] = segment.config;
      // What gave no time in a block of the usual length is slow: it gets longer.
      trial.iterations <<= FailuresOf(segment.config).unmeasured;
      trials.push_back(std::move(trial));
    }
    return trials;
  }
  return {};
}

void Search::Lost() {
  if (!issued_.empty()) learners_[current_]->Lost(epoch_);
  issued_.clear();
}

void Search::GoOn() {
  if (over()) return;
  Lost();
  if (!learners_[current_]->settled()) left_[current_] = MostLikely(current_);
  ++current_;
  if (!over()) Begin();
}

bool Search::gave_up() const {
  return std::any_of(left_.begin(), left_.end(), [](const auto& one) { return one.has_value(); });
}

void Search::Learn(const std::vector<learn::SegmentResult>& results,
                   const std::vector<bool>& begun) {
  if (issued_.empty() || results.size() != issued_.size()) return Lost();
  std::vector<learn::SegmentResult> taken = results;
  double reference = 0;
  std::vector<double> defaults;
  for (size_t i = 0; i < results.size(); ++i) {
    const double seconds = results[i].seconds;
    if (seconds > 0 && (reference == 0 || seconds < reference)) reference = seconds;
    if (seconds > 0 && issued_[i].config.IsDefault()) defaults.push_back(seconds);
  }
  const Config best = learners_[current_]->best();
  const double by_default = defaults.empty() ? 0 : Median(defaults);
  for (size_t i = 0; i < taken.size(); ++i) {
    const Config& config = issued_[i].config;
    if (taken[i].samples > 0) {
      KeepBlock(config, taken[i].seconds, by_default);
      FailuresOf(config) = {};
      continue;
    }
    // The default and the best are what the others are compared with.
    if (config.IsDefault() || config == best || reference == 0) continue;
    Failures& failures = FailuresOf(config);
    ++failures.unmeasured;
    if (i < begun.size() && !begun[i]) ++failures.never_ran;
    const bool slow = failures.unmeasured - failures.never_ran >= kMostUnmeasured;
    if (!slow && failures.never_ran < kMostNeverRan) continue;
    taken[i] = {kFarSlower * reference, 1};
  }
  learners_[current_]->Learn(epoch_, taken);
  issued_.clear();
  AddFewerChannels();
}

Search::Failures& Search::FailuresOf(const Config& config) {
  for (auto& [known, failures] : failures_) {
    if (known == config) return failures;
  }
  return failures_.emplace_back(config, Failures{}).second;
}

// `default_seconds`: of the default in the same trials; 0: it was not among them.
void Search::KeepBlock(const Config& config, double seconds, double default_seconds) {
  ++blocks_;
  std::vector<Measured>& all = measured_[current_];
  auto one = std::find_if(all.begin(), all.end(),
                          [&](const Measured& known) { return known.config == config; });
  if (one == all.end()) one = all.insert(all.end(), {config, 0, {}});
  ++one->blocks;
  if (default_seconds > 0 && !config.IsDefault()) {
    one->beside_default.push_back({seconds, default_seconds});
  }
}

void Search::Ran(size_t context, const Config& asked, const Config& ran) {
  if (context >= contexts_.size() || ran.IsDefault() || ran.channels <= 0) return;
  if (asked.channels != 0) return;
  if (asked.IsDefault()) contexts_[context].by_default = ran;
  own_channels_[{context, PairOf(ran)}] = ran.channels;
}

// The library's own count is an upper bound, and fewer leave more of the GPU to compute.
void Search::AddFewerChannels() {
  const SearchContext& context = contexts_[current_];
  if (!context.channel_counts) return;
  learn::Learner& learner = *learners_[current_];
  const std::vector<learn::ArmSummary> arms = learner.Summary();
  double best = 1;
  for (const learn::ArmSummary& arm : arms) {
    if (arm.config == learner.best()) best = arm.ratio;
  }
  for (const learn::ArmSummary& arm : arms) {
    if (arm.config.channels != 0 || arm.ratio > best * kNearBest) continue;
    if (!arm.config.IsDefault() && arm.samples == 0) continue;
    const std::pair<int, int> pair =
        arm.config.IsDefault() ? PairOf(context.by_default) : PairOf(arm.config);
    const auto own = own_channels_.find({current_, pair});
    if (own == own_channels_.end() ||
        std::find(channels_added_.begin(), channels_added_.end(), pair) != channels_added_.end()) {
      continue;
    }
    channels_added_.push_back(pair);
    for (int fewer = own->second / 2; fewer >= std::max(1, context.least_channels); fewer /= 2) {
      learner.Add({{pair.first, pair.second, fewer}, arm.config.IsDefault() ? 1.0 : 0.0});
    }
  }
}

JobSetting Search::best() const {
  JobSetting setting(contexts_.size());
  for (size_t i = 0; i < contexts_.size(); ++i) {
    if (learners_[i] == nullptr) continue;
    setting[i] = left_[i].has_value() ? *left_[i] : learners_[i]->best();
  }
  return setting;
}

Config Search::MostLikely(size_t context) const {
  Config chosen = learners_[context]->best();
  if (!chosen.IsDefault()) return chosen;
  double highest = 1 - options_.margin;
  for (const TriedConfig& one : TriedIn(context)) {
    if (one.gain < 1 + options_.margin || one.low <= highest) continue;
    highest = one.low;
    chosen = one.config;
  }
  return chosen;
}

JobSetting Search::Candidate() const {
  JobSetting setting = best();
  if (!over()) setting[current_] = MostLikely(current_);
  return setting;
}

std::vector<TriedConfig> Search::TriedIn(size_t context) const {
  std::vector<TriedConfig> tried;
  if (learners_[context] == nullptr) return tried;
  for (const learn::ArmSummary& arm : learners_[context]->Summary()) {
    if (arm.config.IsDefault()) continue;
    TriedConfig one;
    one.config = arm.config;
    for (const Measured& known : measured_[context]) {
      if (known.config != arm.config) continue;
      one.blocks = known.blocks;
      one.times = known.beside_default;
    }
    if (one.blocks > 0 && arm.samples > 0) {
      one.gain = 1 / arm.ratio;
      one.low = 1 / arm.high;
      one.high = 1 / arm.low;
    }
    tried.push_back(one);
  }
  std::stable_sort(tried.begin(), tried.end(),
                   [](const TriedConfig& a, const TriedConfig& b) { return a.gain > b.gain; });
  return tried;
}

}  // namespace diapason::job_tune
