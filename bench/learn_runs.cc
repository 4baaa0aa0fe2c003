#include "learn_runs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/random.h"
#include "learn/rewards.h"

namespace diapason::learn {
namespace {

constexpr int kRanks = 4;
constexpr double kRankSigma = 0.02;
constexpr int kRivalRepeats = 5;
constexpr double kDriftKept = 0.98;  // per call: it lasts for about 50
constexpr uint64_t kDriftDraws = uint64_t{1} << 40;
constexpr double kNearBest = 1.6;  // as in src/plugin/learning/candidates.cc

// The times of calls: all ranks share what happened to the call, and add a little of their own.
class Machine {
 public:
  Machine(const Ground& ground, uint64_t seed) : ground_(ground), random_(seed, 5) {}

  std::array<double, kRanks> Call(size_t arm) {
    const std::vector<float>& factors = ground_.arms[arm].factors;
    const uint64_t bits = random_.Bits(count_++);
    if (ground_.drift > 0) {
      state_ = kDriftKept * state_ + std::sqrt(1 - kDriftKept * kDriftKept) * ground_.drift *
                                         random_.Normal(kDriftDraws + 2 * count_);
    }
    const double shared =
        ground_.arms[arm].ratio * factors[(bits >> 40) % factors.size()] * std::exp(state_);
    std::array<double, kRanks> times{};
    for (int rank = 0; rank < kRanks; ++rank) {
      // Uniform, of that standard deviation.
      const double uniform = static_cast<double>((bits >> (10 * rank)) & 1023) / 1023 - 0.5;
      times[static_cast<size_t>(rank)] = 1e-4 * shared * (1 + kRankSigma * 3.46 * uniform);
    }
    times[0] += 1e-4 * (ground_.arms[arm].offset - ground_.arms[last_].offset);
    times[0] = std::max(times[0], kLeast);
    last_ = arm;
    return times;
  }

 private:
  static constexpr double kLeast = 1e-6;

  const Ground& ground_;
  const CounterRandom random_;
  size_t last_ = 0;
  uint64_t count_ = 0;
  double state_ = 0;  // of the drift
};

// Adds up what an arm's calls cost.
class Account {
 public:
  explicit Account(const Ground& ground) : ground_(ground), best_(ground.BestRatio()) {}
  void Call(size_t arm, size_t incumbent) {
    const double ratio = ground_.arms[arm].ratio;
    outcome_.regret += ratio - best_;
    time_ += ratio;
    const double otherwise = std::min(1.0, ground_.arms[incumbent].ratio);
    if (arm != incumbent) outcome_.lost += std::max(0.0, ratio - otherwise);
    ++calls_;
  }
  void Choose(size_t arm) {
    if (calls_ <= kEarly) outcome_.chosen_200 = ground_.arms[arm].ratio;
    outcome_.chosen = ground_.arms[arm].ratio;
    outcome_.changed = arm != 0;
    const bool good = best_ >= kGood * outcome_.chosen;
    if (good && std::isfinite(outcome_.good_after_calls)) return;
    outcome_.good_after_calls = good ? static_cast<double>(calls_) : INFINITY;
    outcome_.good_after_time = good ? time_ : INFINITY;
  }
  uint64_t calls() const { return calls_; }
  const Outcome& outcome() const { return outcome_; }

 private:
  const Ground& ground_;
  double best_;
  uint64_t calls_ = 0;
  double time_ = 0;
  Outcome outcome_;
};

// Pairs near the best one with fewer channels, as the plugin adds them.
void AddFewerChannels(const Ground& ground, Learner* learner) {
  const std::vector<ArmSummary> arms = learner->Summary();
  double best = 1;
  for (const ArmSummary& arm : arms) {
    if (arm.config == learner->best()) best = arm.ratio;
  }
  for (const ArmSummary& known : arms) {
    if (known.config.IsDefault() || known.samples == 0 || known.ratio > best * kNearBest) continue;
    for (const Ground::Arm& arm : ground.arms) {
      if (arm.config.algorithm == known.config.algorithm &&
          arm.config.protocol == known.config.protocol) {
        learner->Add({arm.config, arm.estimate});
      }
    }
  }
}

size_t ArmOf(const Ground& ground, const Config& config) {
  for (size_t i = 0; i < ground.arms.size(); ++i) {
    if (ground.arms[i].config == config) return i;
  }
  return 0;
}

// Runs a learner for so many calls; `settling`, where given, is filled.
Outcome RunFor(const Ground& ground, LearnOptions options, uint64_t opening, uint64_t calls,
               Settling* settling) {
  // As in the plugin.
  options.lead_in = ground.reporting == 1 ? 1 : 0;
  std::vector<ArmConfig> candidates;
  for (size_t i = 1; i < ground.arms.size(); ++i) {
    if (ground.arms[i].later) continue;
    candidates.push_back({ground.arms[i].config, ground.arms[i].estimate});
  }
  const std::unique_ptr<Learner> learner = MakeLearner(options, {}, candidates);
  Machine machine(ground, options.seed);
  Account account(ground);
  std::vector<SampleBook> books(static_cast<size_t>(ground.reporting));
  for (SampleBook& book : books) book.SkipChanges(options.lead_in > 0);
  struct Proposed {
    Schedule schedule;
    bool settled = false;
  };
  std::map<uint32_t, Proposed> schedules;
  Schedule first;
  first.segments.push_back({{}, opening, true});
  schedules[0].schedule = schedules[1].schedule = first;
  for (uint32_t epoch = 0; account.calls() < calls; ++epoch) {
    if (epoch >= 4) {
      std::vector<std::vector<SegmentResult>> told;
      for (SampleBook& book : books) {
        told.push_back(BlockResults(book.Samples(epoch - 2).value()));
        book.Close(epoch - 2);
      }
      learner->Learn(epoch - 2, SlowestOf(told));
      if (ground.staged) AddFewerChannels(ground, learner.get());
    }
    if (epoch >= 1) {
      Schedule next = learner->Next(epoch + 1);
      schedules[epoch + 1] = {std::move(next), learner->settled()};
    }
    const auto [schedule, settled] = schedules[epoch];
    schedules.erase(epoch);
    if (settling != nullptr && settled && std::isinf(settling->settled_after)) {
      settling->settled_after = static_cast<double>(account.calls());
    }
    uint64_t index = account.calls();
    for (SampleBook& book : books) book.Open(epoch, index, schedule);
    account.Choose(ArmOf(ground, learner->best()));
    const size_t incumbent = ArmOf(ground, schedule.incumbent);
    for (const Segment& segment : schedule.segments) {
      const size_t arm = ArmOf(ground, segment.config);
      for (uint64_t i = 0; i < segment.calls && account.calls() < calls; ++i, ++index) {
        const auto times = machine.Call(arm);
        for (size_t rank = 0; rank < books.size(); ++rank) {
          books[rank].Credit(index, index + 1, times[rank]);
        }
        account.Call(arm, incumbent);
        if (settling == nullptr || !settled) continue;
        settling->calls += 1;
        if (arm == incumbent) continue;
        settling->looking += 1;
        settling->lost += std::max(0.0, ground.arms[arm].ratio - ground.arms[incumbent].ratio);
      }
    }
  }
  account.Choose(ArmOf(ground, learner->best()));
  return account.outcome();
}

}  // namespace

Outcome RunLearner(const Ground& ground, const LearnOptions& options, uint64_t opening) {
  return RunFor(ground, options, opening, kCalls, nullptr);
}

Settling RunLong(const Ground& ground, const LearnOptions& options, uint64_t opening,
                 uint64_t calls) {
  Settling settling;
  (void)RunFor(ground, options, opening, calls, &settling);
  return settling;
}

Outcome RunGreedy(const Ground& ground, double epsilon, uint64_t seed) {
  struct Arm {
    double sum = 0;
    double count = 0;
  };
  std::vector<Arm> arms(ground.arms.size());
  Machine machine(ground, seed);
  Account account(ground);
  const CounterRandom random(seed, 6);
  uint64_t draws = 0;
  while (account.calls() < kCalls) {
    size_t best = 0;
    for (size_t i = 0; i < arms.size(); ++i) {
      if (arms[i].count > 0 && (arms[best].count == 0 ||
                                arms[i].sum / arms[i].count < arms[best].sum / arms[best].count)) {
        best = i;
      }
    }
    size_t arm = best;
    const size_t untried = account.calls();
    if (untried < arms.size()) {
      arm = untried;
    } else if (random.Uniform(draws++) < epsilon) {
      arm = random.Bits(draws++) % arms.size();
    }
    account.Choose(best);
    const auto times = machine.Call(arm);
    account.Call(arm, best);
    arms[arm].sum += *std::max_element(times.begin(), times.end());
    arms[arm].count += 1;
  }
  return account.outcome();
}

Outcome RunRival(const Ground& ground, const bench::RivalMaker& maker, uint64_t seed) {
  bench::RivalTask task;
  for (const Ground::Arm& arm : ground.arms) task.candidates.push_back(arm.config);
  task.repeats = kRivalRepeats;
  task.seed = seed;
  const std::unique_ptr<bench::Rival> rival = maker.make(task);
  Machine machine(ground, seed);
  Account account(ground);
  while (account.calls() < kCalls) {
    account.Choose(rival->Chosen());
    const size_t arm = rival->Next();
    const auto times = machine.Call(arm);
    account.Call(arm, rival->Chosen());
    rival->Took(arm, *std::max_element(times.begin(), times.end()));
  }
  account.Choose(rival->Chosen());
  return account.outcome();
}

Outcome RunFixed(const Ground& ground, size_t arm) {
  Account account(ground);
  account.Choose(arm);
  while (account.calls() < kCalls) account.Call(arm, arm);
  return account.outcome();
}

}  // namespace diapason::learn
