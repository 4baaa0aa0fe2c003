#pragma once

#include <vector>

#include "learn/learner.h"
#include "plugin/learning/background_store.h"
#include "plugin/learning/handover.h"

namespace diapason::plugin {

// Which configurations rank 0 may try in one context: those that all ranks offer. Runs on the
// learning thread only; the arguments outlive it.
class Candidates {
 public:
  Candidates(const LearningHandover* learning, ContextHandover* context, BackgroundStore* store);

  // Reads the offers of the ranks. False: some are missing.
  bool GatherOffers(double now);
  // Whether a configuration that was not chosen here may be tried: all ranks offer its pair, and
  // its channel count is safe.
  bool MayTry(const Config& config) const;
  // The candidates to begin with, beside the library's default.
  std::vector<learn::ArmConfig> Initial(const Config& incumbent);
  // Adds the pairs that are known to be near the best one with fewer channels, each once. Called
  // after results: a pair's own channel count is known once it has run.
  void AddFewerChannels(learn::Learner* learner);

 private:
  bool OfferedByAll(const Config& config) const;
  int EffectiveChannels(const Config& config) const;

  const LearningHandover* const learning_;
  ContextHandover* const context_;
  BackgroundStore* const store_;
  std::vector<int> missing_;  // ranks whose offers are not known yet
  uint64_t offered_ = ~uint64_t{0};
  std::vector<Config> channels_added_for_;
};

}  // namespace diapason::plugin
