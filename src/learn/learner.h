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
  // A change must be faster than the default by this share, and the data must support it.
  double margin = 0.02;
  double confidence = 0.95;
  // The share of time that may be lost to trying: lost time over all time of the context, where at
  // least `horizon` calls are counted as all.
  double budget = 0.03;
  uint64_t horizon = 1000;
  // Calls are scheduled in whole multiples of this: the calls of an iteration, when iterations are
  // the reward.
  uint64_t unit = 1;
  uint64_t seed = 0;
};

// What a block of calls with one configuration took, once all ranks have told.
struct SegmentResult {
  double seconds = 0;  // one call (or iteration), see rewards.h; 0: nobody could tell
  uint32_t samples = 0;
};

// What is known about an arm, for people, policies and datasets.
struct ArmSummary {
  Config config;
  double ratio = 1;  // its time as a multiple of the default's
  double low = 1;    // interval of that at `confidence`
  double high = 1;
  double seconds = 0;  // the median of its blocks
  uint64_t samples = 0;
  bool dropped = false;
};

// Chooses for one context. Pure: no clock, no I/O; the same calls give the same answers. The
// caller asks for the schedules of consecutive epochs and hands the results back, late, out of
// order or never.
class Learner {
 public:
  virtual ~Learner() = default;

  // The schedule of this epoch. Asked once per epoch, in rising order (numbers may be left out).
  virtual Schedule Next(uint32_t epoch) = 0;
  // The proposal did not stand: no results will come for this epoch.
  virtual void Lost(uint32_t epoch) = 0;
  // One entry per segment of that epoch's schedule.
  virtual void Learn(uint32_t epoch, const std::vector<SegmentResult>& results) = 0;
  // Another arm worth trying has become known (fewer channels of a good pair, say).
  virtual void Add(const ArmConfig& candidate) = 0;

  virtual bool settled() const = 0;
  // What to run when nothing is tried: the default until the data say otherwise.
  virtual Config best() const = 0;
  // The default first, then by ratio.
  virtual std::vector<ArmSummary> Summary() const = 0;
  // The share of time lost to trying so far, as `budget` counts it.
  virtual double lost_share() const = 0;
};

// The incumbent is what runs until the data say otherwise: the default, or what a policy says (then
// it is an arm as well, and must keep beating the default).
std::unique_ptr<Learner> MakeLearner(const LearnOptions& options, const Config& incumbent,
                                     std::vector<ArmConfig> candidates);

}  // namespace diapason::learn
