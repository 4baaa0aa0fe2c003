#pragma once

#include <cmath>

#include "base/random.h"
#include "domain/collectives.h"
#include "tune/fake_ranks.h"

namespace diapason::tune {

// A played machine with a known best configuration at every size, after what was seen with several
// ranks that share a GPU: protocols cross over, the library's own choice is up to twice as slow,
// a communicator has few channels (more of them are the same), single configurations have dips
// that no power of two shows, and launches differ a little.
class PlayedMachine {
 public:
  struct Traits {
    int ranks = 4;
    int channels = 2;         // the communicator's own
    double noise = 0.04;      // of a block of calls, log
    double launch_noise = 0;  // of one configuration at one size in one launch, log
    double spike_share = 0.03;
    double dip = 1.6;  // how much slower a configuration is where it has its dip
    uint64_t seed = 1;
  };
  explicit PlayedMachine(Traits traits)
      : traits_(traits), random_(traits.seed, 1), launches_(traits.seed, 2) {}

  // Seconds, without noise. The library's own choice is ring by its usual rules.
  double Truth(Operation operation, uint64_t bytes, const Config& asked) const {
    Config config = asked;
    if (config.IsDefault()) {
      config.algorithm = kRing;
      config.protocol = bytes < 49152 ? kLl : kSimple;
    }
    const double size = static_cast<double>(bytes);
    // The library uses fewer channels for few bytes, whatever is asked for.
    const double wanted = config.channels > 0 ? config.channels : traits_.channels;
    const double channels =
        std::min({wanted, static_cast<double>(traits_.channels), std::max(1.0, size / 16384)});
    const double ranks = traits_.ranks;
    const bool tree = config.algorithm == kTree;
    const double steps = tree ? 2 * std::log2(ranks) : 2 * (ranks - 1);
    const bool half = operation != Operation::kAllReduce;
    double step_us = config.protocol == kLl ? 9 : 14;
    double byte_us = (config.protocol == kLl ? 1 / 700.0 : 1 / 2600.0) * (tree ? 1.7 : 1.0);
    if (config.algorithm == kPat) {
      step_us *= 0.6;
      byte_us *= 1.5;
    }
    // A second channel helps in the middle and hurts where the cores are busy.
    const double together = channels <= 1 ? 1 : (size < 300e3 ? 0.75 : 1.15);
    double us = 20 + (half ? 0.5 : 1) * (steps * step_us + size * byte_us * together);
    if (Dips(operation, bytes, config)) us *= traits_.dip;
    return us * 1e-6;
  }

  // What can be chosen, as pairs and channels that differ.
  double Best(Operation operation, uint64_t bytes) const {
    double best = Truth(operation, bytes, {});
    for (const int algorithm : {kTree, kRing, kPat}) {
      for (const int protocol : {kLl, kSimple}) {
        if (!PairExists(NamesOf(operation), algorithm, protocol)) continue;
        for (int channels = 0; channels <= traits_.channels; ++channels) {
          best = std::min(best, Truth(operation, bytes, {algorithm, protocol, channels, 0}));
        }
      }
    }
    return best;
  }

  measure::Measurement Measure(const measure::Trial& trial, size_t launch) {
    const double truth = Truth(trial.operation, trial.bytes, trial.config);
    const uint64_t name = trial.bytes * 131 + static_cast<uint64_t>(trial.operation) * 7 +
                          static_cast<uint64_t>(trial.config.algorithm + 1) * 1009 +
                          static_cast<uint64_t>(trial.config.protocol + 1) * 31;
    double log = traits_.noise * random_.Normal(draws_++) +
                 traits_.launch_noise * launches_.Normal(name * 64 + launch);
    if (random_.Uniform(draws_++) < traits_.spike_share) log += 0.7;
    return Took(truth * std::exp(log));
  }

  const Traits& traits() const { return traits_; }

 private:
  // Tree is slow at sizes a third of the way between two powers of two, which a sweep over powers
  // of two does not show.
  static bool Dips(Operation operation, uint64_t bytes, const Config& config) {
    if (config.algorithm != kTree || operation != Operation::kAllReduce) return false;
    return (bytes > 20000 && bytes < 28000) || (bytes > 88000 && bytes < 104000);
  }

  Traits traits_;
  CounterRandom random_;
  CounterRandom launches_;
  uint64_t draws_ = 0;
};

}  // namespace diapason::tune
