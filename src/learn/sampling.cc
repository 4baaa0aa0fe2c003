#include <algorithm>
#include <cmath>

#include "base/normal.h"
#include "base/random.h"
#include "learn/arms.h"

namespace diapason::learn {
namespace {

constexpr size_t kBlocks = 6;
constexpr uint64_t kUnits = 3;
constexpr uint64_t kRest = 24;
constexpr size_t kMostOutstanding = 2;
constexpr double kUntried = 0.5;
// Prior spread of the arms, in the logarithm of their times.
constexpr double kSpread = 0.3;

// Strategies that draw an arm for every block. The first and the last block of an epoch run the
// incumbent, with which the others are compared. They never settle and continue within the budget.
class Sampling : public ArmLearner {
 public:
  using ArmLearner::ArmLearner;
  bool settled() const override { return false; }

 protected:
  virtual size_t Draw(const CounterRandom& random, uint64_t* index) const = 0;

  std::vector<Block> Plan() override {
    const bool iterations = options().unit > 1;
    if (Outstanding() >= kMostOutstanding) return {{best_, std::max<uint64_t>(1, LeadUnits())}};
    const uint64_t units = iterations ? 1 : kUnits;
    const CounterRandom random(options().seed, epoch());
    uint64_t index = 0;
    SetReference(best_);
    std::vector<Block> blocks{{best_, units}};
    for (size_t i = 0; i < kBlocks; ++i) {
      std::vector<Block> longer = blocks;
      AddTry(Draw(random, &index), units, &longer);
      if (Affordable(longer)) blocks = std::move(longer);
    }
    if (blocks.size() == 1) return {{best_, iterations ? 1 : kRest}};
    blocks.push_back({best_, units});
    return blocks;
  }

  // The most promising untried arm; 0: none.
  size_t Untried() const {
    size_t found = 0;
    for (size_t i = 1; i < arms_.size(); ++i) {
      if (Known(i) || arms_[i].outstanding > 0) continue;
      if (found == 0 || Predicted(i) < Predicted(found)) found = i;
    }
    return found;
  }
  size_t Fastest() const {
    size_t found = 0;
    for (size_t i = 1; i < arms_.size(); ++i) {
      if (Known(i) && Mean(i) < Mean(found)) found = i;
    }
    return found;
  }
};

// Epsilon-greedy: with probability epsilon any arm, else the one with the best mean. Untried arms
// come first, half of the time, because results of others are pending.
class Epsilon : public Sampling {
 public:
  using Sampling::Sampling;

 protected:
  size_t Draw(const CounterRandom& random, uint64_t* index) const override {
    const size_t untried = Untried();
    if (untried != 0 && random.Uniform((*index)++) < kUntried) return untried;
    if (random.Uniform((*index)++) < options().epsilon) {
      return random.Bits((*index)++) % arms_.size();
    }
    return Fastest();
  }
  void Judge(const std::vector<Observation>&, bool) override { SetBest(Fastest()); }
};

// Thompson sampling: one draw from the posterior of every arm; the lowest wins.
class Thompson : public Sampling {
 public:
  using Sampling::Sampling;

 protected:
  size_t Draw(const CounterRandom& random, uint64_t* index) const override {
    size_t found = 0;
    double lowest = 0;
    for (size_t i = 1; i < arms_.size(); ++i) {
      const double draw = Belief(i) + Doubt(i) * random.Normal((*index)++);
      if (draw < lowest) {
        lowest = draw;
        found = i;
      }
    }
    return found;
  }
  void Judge(const std::vector<Observation>&, bool) override {
    const double quantile = StudentQuantile(options().confidence, noise_.freedom());
    if (best_ != 0 && Belief(best_) > 0) SetBest(0);
    for (size_t i = 1; i < arms_.size(); ++i) {
      if (!Known(i) || Belief(i) > std::log(1 - options().margin)) continue;
      if (Belief(i) + quantile * Doubt(i) < 0 && Belief(i) < Mean(best_)) SetBest(i);
    }
  }

 private:
  double Prior(size_t arm) const { return std::log(Predicted(arm)) / 2; }
  double Precision(size_t arm) const { return Known(arm) ? 1 / (Error(arm) * Error(arm)) : 0; }
  double Belief(size_t arm) const {
    const double prior = 1 / (kSpread * kSpread);
    if (!Known(arm)) return Prior(arm);
    return Mean(arm) * Precision(arm) / (prior + Precision(arm));
  }
  double Doubt(size_t arm) const { return 1 / std::sqrt(1 / (kSpread * kSpread) + Precision(arm)); }
};

}  // namespace

std::unique_ptr<Learner> MakeEpsilon(const LearnOptions& options, const Config& incumbent,
                                     std::vector<ArmConfig> candidates) {
  return std::make_unique<Epsilon>(options, incumbent, std::move(candidates));
}

std::unique_ptr<Learner> MakeThompson(const LearnOptions& options, const Config& incumbent,
                                      std::vector<ArmConfig> candidates) {
  return std::make_unique<Thompson>(options, incumbent, std::move(candidates));
}

}  // namespace diapason::learn
