#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/random.h"
#include "learn/learner.h"

namespace diapason::learn {

// A context with known true ratios, for tests. Arm 0 is the library's default.
struct Truth {
  std::vector<double> ratios{1};     // a call's time as a multiple of the default's
  std::vector<double> estimates{0};  // the library's
  double sigma = 0.05;  // standard deviation of the logarithm of a call's time in a block
  double spikes = 0;    // the fraction of calls that take three times as long

  static Config ConfigOf(size_t arm) {
    if (arm == 0) return {};
    return {static_cast<int>(arm % 4), static_cast<int>(arm % 3), static_cast<int>(arm / 12), 0};
  }
  size_t ArmOf(const Config& config) const {
    for (size_t i = 0; i < ratios.size(); ++i) {
      if (ConfigOf(i) == config) return i;
    }
    return SIZE_MAX;
  }
  std::vector<ArmConfig> Candidates() const {
    std::vector<ArmConfig> candidates;
    for (size_t i = 1; i < ratios.size(); ++i) {
      candidates.push_back({ConfigOf(i), i < estimates.size() ? estimates[i] : 0});
    }
    return candidates;
  }
  void Add(double ratio, double estimate = 0) {
    ratios.push_back(ratio);
    estimates.push_back(estimate);
  }
};

// Runs a learner epoch by epoch. Results arrive when an epoch is over and `late` more have begun.
class Job {
 public:
  Job(const LearnOptions& options, Truth what, const Config& incumbent = {})
      : truth(std::move(what)),
        random_(options.seed, 99),
        unit_(options.unit),
        learner(MakeLearner(options, incumbent, truth.Candidates())) {}

  // Runs one epoch; returns its schedule.
  Schedule Step() {
    const Schedule schedule = learner->Next(epoch_);
    most_lost_share = std::max(most_lost_share, learner->lost_share());
    if (on_schedule) on_schedule(schedule);
    const bool stands = random_.Uniform(draws_++) >= share_lost;
    if (!stands) learner->Lost(epoch_);
    if (stands) waiting_[epoch_] = Run(schedule);
    ++epoch_;
    while (!waiting_.empty() && waiting_.begin()->first + late < epoch_) {
      if (random_.Uniform(draws_++) >= share_missing) {
        learner->Learn(waiting_.begin()->first, waiting_.begin()->second);
      }
      waiting_.erase(waiting_.begin());
    }
    most_lost_share = std::max(most_lost_share, learner->lost_share());
    return schedule;
  }
  void RunFor(uint64_t more) {
    const uint64_t end = calls + more;
    while (calls < end) Step();
  }
  // The true ratio of the learner's choice.
  double Chosen() const { return truth.ratios[truth.ArmOf(learner->best())]; }

  Truth truth;
  uint32_t late = 1;
  double share_lost = 0;     // fraction of epochs in which the proposal does not stand
  double share_missing = 0;  // fraction of epochs whose results never arrive
  std::function<void(const Schedule&)> on_schedule;

  uint64_t calls = 0;
  std::map<size_t, uint64_t> calls_of;  // by arm
  double lost = 0;  // cost of exploration in calls of the default, by the true ratios
  double most_lost_share = 0;

 private:
  std::vector<SegmentResult> Run(const Schedule& schedule) {
    std::vector<SegmentResult> results;
    const double otherwise = std::min(1.0, truth.ratios[truth.ArmOf(schedule.incumbent)]);
    for (const Segment& segment : schedule.segments) {
      const size_t arm = truth.ArmOf(segment.config);
      const double ratio = truth.ratios[arm];
      const uint64_t samples = segment.calls / unit_;
      calls += segment.calls;
      calls_of[arm] += segment.calls;
      lost += std::max(0.0, ratio - otherwise) * static_cast<double>(segment.calls);
      // Approximates a lower quartile.
      double log = truth.sigma * random_.Normal(draws_++) /
                   std::sqrt(static_cast<double>(std::min<uint64_t>(samples, 8)));
      if (random_.Uniform(draws_++) < truth.spikes) log += std::log(1.5);
      SegmentResult result{1e-4 * ratio * std::exp(log), static_cast<uint32_t>(samples)};
      results.push_back(segment.counts ? result : SegmentResult{});
    }
    return results;
  }

  CounterRandom random_;
  uint64_t unit_;
  uint64_t draws_ = 0;
  uint32_t epoch_ = 2;
  std::map<uint32_t, std::vector<SegmentResult>> waiting_;

 public:
  std::unique_ptr<Learner> learner;
};

}  // namespace diapason::learn
