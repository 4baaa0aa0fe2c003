#include "job_tune/launch_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace diapason::job_tune {
namespace {

constexpr int kDefault = -1;
constexpr int kRounds = 2;
constexpr size_t kGoOn = 2;  // candidates, to the second round
constexpr int kMostFailures = 2;
constexpr double kNormal975 = 1.959964;

std::pair<int, int> PairOf(const Config& config) { return {config.algorithm, config.protocol}; }

}  // namespace

double LaunchSearch::Arm::Mean() const {
  return std::accumulate(log_gains.begin(), log_gains.end(), 0.0) /
         static_cast<double>(log_gains.size());
}

LaunchSearch::LaunchSearch(std::vector<SearchContext> contexts, const LaunchSearchOptions& options)
    : contexts_(std::move(contexts)),
      options_(options),
      chosen_(contexts_.size()),
      arms_(contexts_.size()) {
  if (!over()) BeginContext();
}

void LaunchSearch::BeginContext() {
  const SearchContext& context = contexts_[current_];
  std::vector<learn::ArmConfig> offered;
  for (const learn::ArmConfig& one : context.offered) {
    if (PairOf(one.config) != PairOf(context.by_default)) offered.push_back(one);
  }
  // A pair without an estimate comes last.
  std::stable_sort(offered.begin(), offered.end(), [](const auto& a, const auto& b) {
    return std::pair(a.estimate <= 0, a.estimate) < std::pair(b.estimate <= 0, b.estimate);
  });
  if (offered.size() > options_.most_pairs) offered.resize(options_.most_pairs);
  for (const learn::ArmConfig& one : offered) arms_[current_].push_back({one.config});
  stage_ = Stage::kPairs;
  round_ = 0;
  rounds_begun_ = 0;
  default_failed_ = 0;
  if (offered.empty()) return BeginCounts({});
  BeginRound();
}

// The library's own count is an upper bound, and fewer leave more of the GPU to compute.
void LaunchSearch::BeginCounts(const Config& best) {
  const SearchContext& context = contexts_[current_];
  const std::pair<int, int> pair = best.IsDefault() ? PairOf(context.by_default) : PairOf(best);
  stage_ = Stage::kCounts;
  round_ = 0;
  size_t added = 0;
  if (context.channel_counts && !context.by_default.IsDefault()) {
    for (Arm& arm : arms_[current_]) arm.alive = arm.config == best;
    const int least = std::max(1, context.least_channels);
    for (int fewer = context.by_default.channels / 2;
         fewer >= least && added < options_.most_counts; fewer /= 2, ++added) {
      arms_[current_].push_back({Config{pair.first, pair.second, fewer}});
    }
  }
  if (added == 0) return EndContext(best);
  BeginRound();
}

void LaunchSearch::BeginRound() {
  ++round_;
  order_ = {kDefault};
  std::vector<Arm>& arms = arms_[current_];
  for (size_t i = 0; i < arms.size(); ++i) {
    arms[i].seconds = 0;
    if (arms[i].alive) order_.push_back(static_cast<int>(i));
  }
  if (rounds_begun_++ % 2 == 1) std::reverse(order_.begin(), order_.end());
  at_ = 0;
  default_seconds_ = 0;
}

std::optional<JobSetting> LaunchSearch::Next() const {
  if (over() || stopped_) return std::nullopt;
  JobSetting setting = chosen_;
  const int arm = order_[at_];
  setting[current_] = arm == kDefault ? Config() : arms_[current_][static_cast<size_t>(arm)].config;
  return setting;
}

void LaunchSearch::Learn(double seconds) {
  if (over() || stopped_) return;
  ++launches_;
  const int arm = order_[at_];
  const bool timed = seconds > 0;
  if (arm == kDefault) {
    if (timed) {
      default_seconds_ = seconds;
      default_failed_ = 0;
    } else if (++default_failed_ >= kMostFailures) {
      return EndContext({});
    } else {
      return;  // once more
    }
  } else {
    Arm& tried = arms_[current_][static_cast<size_t>(arm)];
    tried.seconds = timed ? seconds : 0;
    tried.alive = timed;
  }
  if (++at_ == order_.size()) EndRound();
}

std::vector<size_t> LaunchSearch::Ranked() const {
  const std::vector<Arm>& arms = arms_[current_];
  std::vector<size_t> ranked;
  for (size_t i = 0; i < arms.size(); ++i) {
    if (arms[i].alive && !arms[i].log_gains.empty()) ranked.push_back(i);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](size_t a, size_t b) { return arms[a].Mean() > arms[b].Mean(); });
  return ranked;
}

void LaunchSearch::CountRound() {
  if (default_seconds_ <= 0) return;
  for (Arm& arm : arms_[current_]) {
    if (arm.seconds <= 0) continue;
    arm.log_gains.push_back(std::log(default_seconds_ / arm.seconds));
    arm.times.push_back({arm.seconds, default_seconds_});
  }
}

void LaunchSearch::Stop() {
  if (over() || stopped_) return;
  stopped_ = true;
  CountRound();
}

void LaunchSearch::EndRound() {
  std::vector<Arm>& arms = arms_[current_];
  CountRound();
  std::vector<size_t> ranked = Ranked();
  if (ranked.empty()) return EndStage();
  const double first = arms[ranked[0]].Mean();
  for (size_t i = 0; i < ranked.size(); ++i) {
    Arm& arm = arms[ranked[i]];
    if (i >= kGoOn || arm.Mean() < std::max(first, 0.0) - options_.slower) arm.alive = false;
  }
  ranked = Ranked();
  if (ranked.empty() || round_ >= kRounds) return EndStage();
  const double second = ranked.size() > 1 ? arms[ranked[1]].Mean() : 0;
  if (first - std::max(second, 0.0) > options_.ahead) return EndStage();
  BeginRound();
}

Config LaunchSearch::Winner() const {
  const std::vector<size_t> ranked = Ranked();
  if (ranked.empty()) return {};
  const Arm& best = arms_[current_][ranked[0]];
  return best.Mean() > std::log1p(options_.margin) ? best.config : Config();
}

void LaunchSearch::EndStage() {
  const Config winner = Winner();
  if (stage_ == Stage::kPairs) return BeginCounts(winner);
  EndContext(winner);
}

void LaunchSearch::EndContext(const Config& chosen) {
  chosen_[current_] = chosen;
  ++current_;
  if (!over()) BeginContext();
}

JobSetting LaunchSearch::Candidate() const {
  JobSetting setting = chosen_;
  if (!over()) setting[current_] = Winner();
  return setting;
}

std::vector<TriedConfig> LaunchSearch::TriedIn(size_t context) const {
  std::vector<TriedConfig> tried;
  for (const Arm& arm : arms_[context]) {
    if (arm.log_gains.empty()) continue;
    TriedConfig one;
    one.config = arm.config;
    const double half = kNormal975 * PooledGain::kAssumedSpread /
                        std::sqrt(static_cast<double>(arm.log_gains.size()));
    one.gain = std::exp(arm.Mean());
    one.low = std::exp(arm.Mean() - half);
    one.high = std::exp(arm.Mean() + half);
    one.blocks = arm.times.size();
    one.times = arm.times;
    tried.push_back(std::move(one));
  }
  std::stable_sort(tried.begin(), tried.end(),
                   [](const TriedConfig& a, const TriedConfig& b) { return a.gain > b.gain; });
  return tried;
}

}  // namespace diapason::job_tune
