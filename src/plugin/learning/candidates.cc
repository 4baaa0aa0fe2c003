#include "plugin/learning/candidates.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/mutex_lock.h"
#include "base/text.h"
#include "plugin/abi/selection.h"

namespace diapason::plugin {
namespace {

// pairs within this factor of the best are tried with fewer channels, too
constexpr double kNearBest = 1.6;

Config Pair(size_t number) {
  return {static_cast<int>(number) / kOfferedProtocols,
          static_cast<int>(number) % kOfferedProtocols, 0};
}

}  // namespace

Candidates::Candidates(const LearningHandover* learning, ContextHandover* context,
                       BackgroundStore* store)
    : learning_(learning),
      context_(context),
      store_(store),
      missing_(static_cast<size_t>(learning->options.shape.ranks)) {
  std::iota(missing_.begin(), missing_.end(), 0);
}

bool Candidates::GatherOffers(double now) {
  return store_->Gather(
      &missing_, now, [this](int rank) { return context_->prefix + Format("o.{}", rank); },
      [this](const std::string& text) {
        uint64_t offer = 0;
        const char* last = text.data() + text.size();
        const auto [end, error] = std::from_chars(text.data(), last, offer, 16);
        // An offer that cannot be parsed offers nothing.
        offered_ &= error == std::errc() && end == last ? offer : 0;
      });
}

bool Candidates::OfferedByAll(const Config& config) const {
  return CanBeOffered(config.algorithm, config.protocol) &&
         (offered_ >> PairNumber(config.algorithm, config.protocol) & 1) != 0;
}

// From 2.31 on a count at or above the library's own leaves the library's own in force. Where that
// is known, such a count is not tried as a configuration of its own.
int Candidates::EffectiveChannels(const Config& config) const {
  if (!learning_->options.is_2_31 || !CanBeOffered(config.algorithm, config.protocol)) {
    return config.channels;
  }
  const int own = context_->ran_channels[config.algorithm][config.protocol];
  return own > 0 && config.channels >= own ? 0 : config.channels;
}

bool Candidates::MayTry(const Config& config) const {
  const LearningOptions& options = learning_->options;
  if (config.IsDefault() || !OfferedByAll(config)) return false;
  // From 2.29 on the answer also selects between two kinds of kernels, and LL would switch the
  // kind.
  if (options.host.has_new_scheduler() && config.protocol == kLl) return false;
  if (config.channels == 0) return true;
  if (context_->collective == Collective::kAllGather && !options.allgather_channels) return false;
  return config.channels >= options.min_ctas &&
         SafeChannels(options.host.library, config.channels, config.algorithm, options.shape) ==
             config.channels;
}

std::vector<learn::ArmConfig> Candidates::Initial(const Config& incumbent) {
  channels_added_for_.clear();
  const LearningOptions& options = learning_->options;
  std::vector<float> costs;
  {
    const MutexLock lock(&context_->mutex);
    costs = context_->costs;
  }
  costs.resize(kPairs, -1.0f);
  Config by_default;
  double cheapest = 0;
  for (size_t pair = 0; pair < kPairs; ++pair) {
    if (!Available(costs[pair]) || (cheapest > 0 && costs[pair] > cheapest)) continue;
    if (costs[pair] == cheapest && cheapest > 0 && !options.is_2_31) continue;
    cheapest = costs[pair];
    by_default = Pair(pair);
  }
  // The observed default is more reliable than the table.
  if (context_->default_algorithm >= 0) {
    by_default = {context_->default_algorithm, context_->default_protocol, 0};
  }
  std::vector<learn::ArmConfig> candidates;
  const auto consider = [&](Config config) {
    if (config != incumbent) config.channels = EffectiveChannels(config);
    if (config.IsDefault() || config == by_default || !OfferedByAll(config)) return;
    // From 2.29 on the answer also selects between two kinds of kernels, and LL would switch the
    // kind.
    if (options.host.has_new_scheduler() && config.protocol == kLl && config != incumbent) return;
    if (std::any_of(candidates.begin(), candidates.end(),
                    [&](const learn::ArmConfig& one) { return one.config == config; })) {
      return;
    }
    const double cost = costs[PairNumber(config.algorithm, config.protocol)];
    candidates.push_back({config, cost > 0 && cheapest > 0 ? cost / cheapest : 0});
  };
  if (options.arms == "policy" || options.arms == "auto") {
    const uint64_t bytes = BandLast(context_->band);
    for (const policy::Rule& rule : learning_->policy.rules) {
      if (rule.collective == context_->collective && rule.MatchesShape(options.shape) &&
          rule.min_bytes <= bytes && bytes <= rule.max_bytes) {
        consider(rule.config);
      }
    }
  }
  if (options.arms == "seed") {
    for (const Config& config :
         {Config{kTree, kSimple, 0}, Config{kTree, kLl128, 0}, Config{kRing, kSimple, 0}}) {
      consider(config);
    }
  }
  if (options.arms == "offered" || (options.arms == "auto" && candidates.empty())) {
    for (size_t pair = 0; pair < kPairs; ++pair) consider(Pair(pair));
  }
  return candidates;
}

// The library's own channel count is an upper bound; fewer channels leave more of the GPU to
// compute, and are often faster.
void Candidates::AddFewerChannels(learn::Learner* learner) {
  const LearningOptions& options = learning_->options;
  if (options.arms == "policy" || options.arms == "seed") return;
  if (context_->collective == Collective::kAllGather && !options.allgather_channels) return;
  const std::vector<learn::ArmSummary> arms = learner->Summary();
  double best = 1;
  for (const learn::ArmSummary& arm : arms) {
    if (arm.config == learner->best()) best = arm.ratio;
  }
  for (const learn::ArmSummary& arm : arms) {
    // With fewer channels another pair may be the best one.
    if (arm.config.channels != 0 || arm.ratio > best * kNearBest) continue;
    if (!arm.config.IsDefault() && arm.samples == 0) continue;
    Config pair = arm.config;
    if (pair.IsDefault()) pair = {context_->default_algorithm, context_->default_protocol, 0};
    if (!OfferedByAll(pair) || std::find(channels_added_for_.begin(), channels_added_for_.end(),
                                         pair) != channels_added_for_.end()) {
      continue;
    }
    channels_added_for_.push_back(pair);
    const int channels = context_->ran_channels[pair.algorithm][pair.protocol];
    for (int fewer = channels / 2; fewer >= 1; fewer /= 2) {
      if (fewer < options.min_ctas ||
          SafeChannels(options.host.library, fewer, pair.algorithm, options.shape) != fewer) {
        continue;
      }
      // Without a measurement, the default's own pair counts as fast as the default.
      learner->Add({{pair.algorithm, pair.protocol, fewer}, arm.config.IsDefault() ? 1.0 : 0.0});
    }
  }
}

}  // namespace diapason::plugin
