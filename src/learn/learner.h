#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "domain/schedule.h"

namespace diapason::learn {

// A configuration that may be tried. The library's default is always an arm and is not listed.
struct ArmConfig {
  Config config;
  // The library's own estimate of its time as a multiple of the default's; 0: unknown.
  double estimate = 0;
};

enum class Strategy { kElimination, kEpsilon, kThompson };
Result<Strategy> ParseStrategy(std::string_view name);
std::string_view StrategyName(Strategy strategy);

struct LearnOptions {
  Strategy strategy = Strategy::kElimination;
  double epsilon = 0.1;  // of kEpsilon
  // A new choice must be faster than the default by this fraction, with sufficient evidence.
  double margin = 0.02;
  double confidence = 0.95;
  // The fraction of time that exploration may cost: lost time over all time of the context, with at
  // least `horizon` calls in the denominator.
  double budget = 0.03;
  uint64_t horizon = 1000;
  // Calls are scheduled in whole multiples of this: the calls of an iteration, if iterations are
  // the reward.
  uint64_t unit = 1;
  // Units by which a block after another configuration is longer, because the first ones are not
  // counted (SampleBook).
  uint64_t lead_in = 0;
  uint64_t seed = 0;
};

// The time of a block of calls with one configuration, after all ranks have reported.
struct SegmentResult {
  double seconds = 0;  // one call (or iteration), see rewards.h; 0: not measured
  uint32_t samples = 0;
};

// The results of an arm, for users, policies and datasets.
struct ArmSummary {
  Config config;
  double ratio = 1;  // its time as a multiple of the default's
  double low = 1;    // interval of that at `confidence`
  double high = 1;
  double seconds = 0;  // the median of its blocks
  uint64_t samples = 0;
  bool dropped = false;
};

// Chooses configurations for one context. Pure: no clock, no I/O; the same calls give the same
// answers. The caller asks for the schedules of consecutive epochs and passes the results back,
// possibly late, out of order or never. Not thread-safe.
class Learner {
 public:
  virtual ~Learner() = default;

  // The schedule of this epoch. Called once per epoch, in increasing order (epochs may be skipped).
  virtual Schedule Next(uint32_t epoch) = 0;
  // The proposal did not stand: no results will come for this epoch.
  virtual void Lost(uint32_t epoch) = 0;
  // One entry per segment of that epoch's schedule.
  virtual void Learn(uint32_t epoch, const std::vector<SegmentResult>& results) = 0;
  // Adds an arm found later (for example fewer channels of a good pair).
  virtual void Add(const ArmConfig& candidate) = 0;

  // Results arrive about this many calls after an epoch: an epoch that only waits for results is
  // at least so long. 0 at first.
  virtual void SetLead(uint64_t calls) = 0;

  virtual bool settled() const = 0;
  // The choice without exploration: the default until the evidence favours another.
  virtual Config best() const = 0;
  // The default first, then by ratio.
  virtual std::vector<ArmSummary> Summary() const = 0;
  // The fraction of time lost to exploration so far, as for `budget`.
  virtual double lost_share() const = 0;
};

// The incumbent runs until the evidence favours another: the default, or a policy's configuration
// (then it is an arm as well, and must stay better than the default).
std::unique_ptr<Learner> MakeLearner(const LearnOptions& options, const Config& incumbent,
                                     std::vector<ArmConfig> candidates);

}  // namespace diapason::learn
