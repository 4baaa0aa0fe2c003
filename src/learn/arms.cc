#include "learn/arms.h"

#include <algorithm>
#include <cmath>

#include "base/normal.h"
#include "base/stats.h"

namespace diapason::learn {
namespace {

// Results that are still missing after this many epochs will not come.
constexpr uint32_t kLatest = 16;
constexpr size_t kMostArms = 64;
constexpr size_t kKeptSeconds = 64;
constexpr double kOpening = 32;  // calls of the incumbent before the first schedule
constexpr double kUnknown = 2;
// For an unknown arm: at least this ratio, or this multiple of the prediction.
constexpr double kFeared = 4;
constexpr double kFear = 2;
// The spendable fraction of the budget; the rest is for arms that turn out worse than feared.
constexpr double kSpendable = 0.9;
// The largest fraction of an iteration that one context's calls are assumed to take.
constexpr double kOfIteration = 0.5;
constexpr double kMostSeconds = 1e6;

bool Sensible(const SegmentResult& result) {
  return result.samples > 0 && std::isfinite(result.seconds) && result.seconds > 0 &&
         result.seconds < kMostSeconds;
}

}  // namespace

ArmLearner::ArmLearner(const LearnOptions& options, const Config& incumbent,
                       std::vector<ArmConfig> candidates)
    : options_(options), time_(kOpening) {
  options_.unit = std::clamp<uint64_t>(options_.unit, 1, uint64_t{1} << 20);
  options_.margin = std::clamp(options_.margin, 0.0, 0.9);
  options_.confidence = std::clamp(options_.confidence, 0.5, 0.999999);
  options_.budget = std::clamp(options_.budget, 0.0, 1.0);
  options_.epsilon = std::clamp(options_.epsilon, 0.0, 1.0);
  options_.horizon = std::max<uint64_t>(options_.horizon, 1);
  arms_.emplace_back();
  touched_.insert(kKeep);
  if (!incumbent.IsDefault()) {
    ArmLearner::Add({incumbent, 1});
    best_ = 1;
    arms_[1].from_policy = true;
    touched_.insert(incumbent.algorithm);
  }
  for (const ArmConfig& candidate : candidates) ArmLearner::Add(candidate);
}

size_t ArmLearner::Find(const Config& config) const {
  size_t arm = 0;
  while (arm < arms_.size() && arms_[arm].config != config) ++arm;
  return arm;
}

void ArmLearner::Add(const ArmConfig& candidate) {
  if (Find(candidate.config) < arms_.size() || arms_.size() == kMostArms) return;
  Arm arm;
  arm.config = candidate.config;
  const bool sensible = std::isfinite(candidate.estimate) && candidate.estimate > 0;
  arm.estimate = sensible ? std::clamp(candidate.estimate, 1e-3, 1e3) : 0;
  arms_.push_back(std::move(arm));
  comparisons_.Solve(arms_.size(), noise_);
}

double ArmLearner::Diluted(double ratio) const {
  return options_.unit > 1 ? 1 + kOfIteration * (ratio - 1) : ratio;
}

bool ArmLearner::Siblings(size_t one, size_t other) const {
  const Config& a = arms_[one].config;
  const Config& b = arms_[other].config;
  return one != other && a.algorithm == b.algorithm && a.protocol == b.protocol;
}

double ArmLearner::Sibling(size_t arm, double* steps) const {
  const int wanted = arms_[arm].config.channels;
  double nearest = HUGE_VAL;
  double ratio = 0;
  for (size_t other = 1; other < arms_.size(); ++other) {
    if (!Siblings(arm, other) || !Known(other)) continue;
    const int channels = arms_[other].config.channels;
    // 0 means the library's own channel count, which is unknown and may be the nearest.
    const bool counted = wanted > 0 && channels > 0;
    const double distance =
        counted ? std::max(1.0, std::abs(std::log2(double(wanted) / channels))) : 1;
    if (distance >= nearest) continue;
    nearest = distance;
    ratio = std::exp(Mean(other));
  }
  if (steps != nullptr) *steps = ratio > 0 ? nearest : 1;
  return ratio;
}

bool ArmLearner::Premature(size_t arm) const {
  const Config& wanted = arms_[arm].config;
  if (arms_[arm].estimate > 0 || Sibling(arm) > 0) return false;
  return std::any_of(arms_.begin() + 1, arms_.end(), [&](const Arm& other) {
    return other.estimate > 0 && other.config.algorithm == wanted.algorithm &&
           other.config.protocol == wanted.protocol;
  });
}

double ArmLearner::Expected(size_t arm) const {
  const double sibling = Sibling(arm);
  if (sibling > 0) return sibling;
  const double estimate = arms_[arm].estimate;
  return estimate > 0 ? Diluted(surprise_ * std::max(estimate, 1.0)) : 0;
}

double ArmLearner::Predicted(size_t arm) const {
  if (arm == 0) return 1;
  if (Known(arm)) return std::exp(Mean(arm));
  const double expected = Expected(arm);
  return expected > 0 ? expected : Diluted(surprise_ * kUnknown);
}

double ArmLearner::Feared(size_t arm) const {
  if (arm == 0) return 1;
  if (Known(arm)) return std::exp(Mean(arm) + 2 * Error(arm));
  // Every halving of the channels may double the time of a call.
  double steps = 1;
  Sibling(arm, &steps);
  return std::max(Diluted(kFeared), std::pow(kFear, steps) * Predicted(arm));
}

double ArmLearner::BestRatio() const {
  return Known(best_) ? std::min(1.0, std::exp(Mean(best_))) : 1;
}

double ArmLearner::Loss(const std::vector<Block>& blocks, bool feared) const {
  double loss = 0;
  const double best = BestRatio();
  for (const Block& block : blocks) {
    if (block.arm == best_) continue;
    const double ratio = feared ? Feared(block.arm) : Predicted(block.arm);
    loss += std::max(0.0, ratio - best) *
            static_cast<double>((block.units + LeadIn(block)) * options_.unit);
  }
  return loss;
}

double ArmLearner::AllTime() const {
  return std::max(time_, static_cast<double>(options_.horizon));
}

bool ArmLearner::Affordable(const std::vector<Block>& blocks, double share) const {
  double feared = lost_;
  for (const auto& [number, issued] : issued_) feared += issued.feared;
  const double left = kSpendable * options_.budget * AllTime() - feared;
  return Loss(blocks, true) <= share * left;
}

size_t ArmLearner::Outstanding() const {
  size_t count = 0;
  for (const auto& [number, issued] : issued_) count += issued.explores ? 1 : 0;
  return count;
}

double ArmLearner::lost_share() const {
  double lost = lost_;
  for (const auto& [number, issued] : issued_) lost += issued.predicted;
  return lost / AllTime();
}

void ArmLearner::AddTry(size_t arm, uint64_t units, std::vector<Block>* blocks) const {
  const int algorithm = arms_[arm].config.algorithm;
  const bool used = std::any_of(blocks->begin(), blocks->end(), [&](const Block& block) {
    return arms_[block.arm].config.algorithm == algorithm;
  });
  if (!used && touched_.count(algorithm) == 0) blocks->push_back({arm, 1, false});
  blocks->push_back({arm, units, true});
}

Schedule ArmLearner::Next(uint32_t epoch) {
  epoch_ = epoch;
  Lost(epoch);
  // Results that are missing by now are charged as predicted.
  while (!issued_.empty() && issued_.begin()->first + kLatest < epoch) {
    lost_ += issued_.begin()->second.predicted;
    Release(issued_.begin()->second);
    issued_.erase(issued_.begin());
  }
  reference_ = 0;
  probe_ = false;
  Issued issued;
  issued.blocks = Plan();
  if (issued.blocks.empty()) issued.blocks.push_back({best_, 1, true});
  if (issued.blocks.size() > kMostSegments) issued.blocks.resize(kMostSegments);
  issued.reference = reference_;
  issued.probe = probe_;
  issued.best = best_;
  issued.best_ratio = BestRatio();
  issued.predicted = Loss(issued.blocks, false);
  issued.feared = Loss(issued.blocks, true);
  AddLeadIns(&issued.blocks);
  Schedule schedule;
  schedule.incumbent = best();
  for (Block& block : issued.blocks) {
    block.units = std::clamp<uint64_t>(block.units, 1, kMostCalls / options_.unit);
    Segment segment{arms_[block.arm].config, block.units * options_.unit, block.counts};
    issued.time += static_cast<double>(segment.calls) * Predicted(block.arm);
    if (block.arm != issued.blocks.front().arm || block.arm != best_) issued.explores = true;
    const int algorithm = arms_[block.arm].config.algorithm;
    if (touched_.insert(algorithm).second) issued.first_uses.push_back(algorithm);
    ++arms_[block.arm].outstanding;
    schedule.segments.push_back(segment);
  }
  time_ += issued.time;
  issued_[epoch] = std::move(issued);
  return schedule;
}

// A single call to see whether an arm is far slower is worth no second one.
uint64_t ArmLearner::LeadIn(const Block& block) const {
  return block.counts && block.units > 1 ? options_.lead_in : 0;
}

void ArmLearner::AddLeadIns(std::vector<Block>* blocks) const {
  size_t before = best_;
  for (Block& block : *blocks) {
    if (block.arm != before) block.units += LeadIn(block);
    before = block.arm;
  }
}

void ArmLearner::Release(const Issued& issued) {
  for (const Block& block : issued.blocks) --arms_[block.arm].outstanding;
}

void ArmLearner::Lost(uint32_t epoch) {
  const auto place = issued_.find(epoch);
  if (place == issued_.end()) return;
  Release(place->second);
  for (const int algorithm : place->second.first_uses) touched_.erase(algorithm);
  time_ -= place->second.time;
  issued_.erase(place);
}

void ArmLearner::Learn(uint32_t epoch, const std::vector<SegmentResult>& results) {
  const auto place = issued_.find(epoch);
  if (place == issued_.end() || results.size() != place->second.blocks.size()) return;
  const Issued issued = std::move(place->second);
  issued_.erase(place);
  Release(issued);
  const std::vector<Observation> seen = Compare(issued, results);
  Surprise(seen);
  for (const Observation& one : seen) {
    comparisons_.Add(one.arm, one.reference, one.log_ratio, one.weight);
  }
  comparisons_.Solve(arms_.size(), noise_);
  for (const Block& block : issued.blocks) {
    if (block.arm == issued.best) continue;
    lost_ += std::max(0.0, Predicted(block.arm) - issued.best_ratio) *
             static_cast<double>(block.units * options_.unit);
  }
  Judge(seen, issued.probe);
}

std::vector<ArmLearner::Observation> ArmLearner::Compare(
    const Issued& issued, const std::vector<SegmentResult>& results) {
  struct Reference {
    size_t place = 0;
    double log = 0;
    double weight = 0;
  };
  std::vector<Reference> references;
  std::vector<double> logs;
  for (size_t i = 0; i < results.size(); ++i) {
    const Block& block = issued.blocks[i];
    if (!block.counts || !Sensible(results[i])) continue;
    Arm& arm = arms_[block.arm];
    arm.samples += results[i].samples;
    if (arm.seconds.size() == kKeptSeconds) arm.seconds.pop_front();
    arm.seconds.push_back(results[i].seconds);
    if (block.arm != issued.reference) continue;
    const double log = std::log(results[i].seconds);
    references.push_back({i, log, static_cast<double>(results[i].samples)});
    logs.push_back(log);
  }
  std::vector<Observation> seen;
  if (references.empty()) return seen;
  // The noise is the difference between consecutive reference blocks; an outlier in one of them
  // must not make the arms beside it look fast.
  for (size_t i = 1; i < references.size(); ++i) {
    const double difference = references[i].log - references[i - 1].log;
    noise_.Add(difference * difference,
               1 / (1 / references[i].weight + 1 / references[i - 1].weight));
  }
  const double middle = Quantile(logs, 0.4);
  for (Reference& reference : references) {
    const double limit = 2 * noise_.sigma() / std::sqrt(reference.weight);
    reference.log = std::clamp(reference.log, middle - limit, middle + limit);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Block& block = issued.blocks[i];
    if (!block.counts || !Sensible(results[i]) || block.arm == issued.reference) continue;
    double log = 0;
    double weight = 0;
    for (size_t r = 0; r < references.size(); ++r) {
      const bool before =
          references[r].place < i && (r + 1 == references.size() || references[r + 1].place > i);
      const bool after = references[r].place > i && (r == 0 || references[r - 1].place < i);
      if (!before && !after) continue;
      log += references[r].weight * references[r].log;
      weight += references[r].weight;
    }
    Observation observation;
    observation.arm = block.arm;
    observation.reference = issued.reference;
    observation.log_ratio = std::log(results[i].seconds) - log / weight;
    observation.weight = 1 / (1 / static_cast<double>(results[i].samples) + 1 / weight);
    seen.push_back(observation);
  }
  return seen;
}

void ArmLearner::Surprise(const std::vector<Observation>& seen) {
  for (const Observation& observation : seen) {
    if (Known(observation.arm)) continue;
    const double ratio = std::exp(observation.log_ratio + Mean(observation.reference));
    surprise_ = std::clamp(ratio / Predicted(observation.arm) * surprise_, surprise_, 4.0);
  }
}

void ArmLearner::Forget() {
  for (size_t i = 1; i < arms_.size(); ++i) {
    if (Known(i)) arms_[i].estimate = std::exp(Mean(i));
  }
  comparisons_.Clear();
  comparisons_.Solve(arms_.size(), noise_);
}

std::vector<ArmSummary> ArmLearner::Summary() const {
  std::vector<ArmSummary> summaries;
  const double quantile = StudentQuantile((1 + options_.confidence) / 2, noise_.freedom());
  for (size_t i = 0; i < arms_.size(); ++i) {
    const Arm& arm = arms_[i];
    ArmSummary summary;
    summary.config = arm.config;
    summary.samples = arm.samples;
    summary.dropped = arm.dropped;
    if (!arm.seconds.empty()) summary.seconds = Median({arm.seconds.begin(), arm.seconds.end()});
    if (i > 0 && Known(i)) {
      summary.ratio = std::exp(Mean(i));
      summary.low = std::exp(Mean(i) - quantile * Error(i));
      summary.high = std::exp(Mean(i) + quantile * Error(i));
    }
    summaries.push_back(summary);
  }
  std::stable_sort(summaries.begin() + 1, summaries.end(),
                   [](const ArmSummary& a, const ArmSummary& b) { return a.ratio < b.ratio; });
  return summaries;
}

}  // namespace diapason::learn
