#include <algorithm>
#include <cmath>

#include "base/normal.h"
#include "learn/arms.h"

namespace diapason::learn {
namespace {

// Successive elimination.
//
// Arms are tried in short blocks between blocks of the reference (the default, or the best arm once
// there is one), the most promising first: by the library's estimate, or by the result of the same
// pair with other channels. An arm that is expected to be slow gets a single call at first. One
// that is expected to take kFar times as long (kFarSibling, if that is known from the same pair
// with other channels) is tried last, alone, and only if a quarter of the remaining budget pays for
// it; in most contexts that is never. An arm is dropped when it is slower than the best by more
// than the noise, which for a very slow one is after its first block. An arm that has run for long
// without being better is a tie, and the default stays. How long that is, and the length of blocks,
// follow the noise of the calls.
//
// The best of many noisy arms looks better than it is (selection bias). So an arm takes over only
// when it is faster than the default at a confidence level divided by the number of arms, and from
// then on the default is tried beside the best arm until the evidence is clear.
//
// When nothing is left to try, the best arm runs for longer and longer epochs; in between a short
// probe compares it with the default and with the second best. Two consecutive probes that deviate
// in the same direction mean that the machine has changed: exploration starts over, at most once in
// kProbesPerReopening probes.
class Elimination : public ArmLearner {
 public:
  using ArmLearner::ArmLearner;
  bool settled() const override { return settled_; }

 protected:
  std::vector<Block> Plan() override;
  void Judge(const std::vector<Observation>& seen, bool probe) override;

 private:
  std::vector<size_t> Pick() const;
  bool Worth(size_t arm) const;
  bool Ahead(size_t arm, bool often) const;
  bool Sustained() const;
  bool Awaited(size_t arm) const;
  std::vector<Block> Between(const std::vector<size_t>& picks, uint64_t units) const;
  uint64_t Units(const std::vector<size_t>& picks) const;
  double Noisier() const;
  double Enough() const;
  std::vector<Block> Wait();
  std::vector<Block> Rest();
  void Promote();
  void Eliminate();
  void Settle();
  std::vector<size_t> Probed() const;
  void Expect();
  size_t RunnerUp() const;
  void JudgeProbe(const std::vector<Observation>& seen);
  void Reopen();
  bool Iterations() const { return options().unit > 1; }

  bool settled_ = false;
  int waits_ = 0;
  // Settled: the best arm is probed now and then, ever more rarely.
  uint64_t rest_ = 0;
  bool probe_next_ = false;
  double expected_ = 0;  // ratio of the probed arm
  double expected_error_ = 0;
  size_t expected_arm_ = 0;
  int strange_ = 0;  // consecutive deviating probes, counted with the sign of the deviation
  uint64_t probes_ = 0;
  uint64_t reopened_ = 0;  // the value of probes_ at the last reopening
  std::vector<bool> retried_;
};

constexpr size_t kMostOutstanding = 2;
constexpr size_t kArmsPerEpoch = 5;
// Arms tried between two reference blocks.
constexpr size_t kBetween = 2;
constexpr uint64_t kFirstUnits = 2;
constexpr uint64_t kRaceUnits = 3;
constexpr uint64_t kProbeUnits = 2;
constexpr uint64_t kRaceIterations = 3;
constexpr double kLongestRace = 4;  // times the shortest
// A block between candidates adds this part of the evidence that there is: what is still worth
// trying is close, so that a longer block costs little.
constexpr double kRaceShare = 0.25;
// The noise of a call for which the shortest blocks and kEnough are right. Evidence counts in
// calls, and as many more are needed as the variance is larger.
constexpr double kUsualNoise = 0.05;
constexpr double kMostNoisier = 16;
constexpr double kFar = 4;          // predicted ratio from which an arm is tried last
constexpr double kFarSibling = 2;   // the same, if a sibling had that ratio
constexpr double kPromising = 1.2;  // largest expected ratio of an arm that is tried again
constexpr double kSlower = 2;  // standard errors by which an arm is slower than the best: dropped
constexpr double kHopeless = 1.5;  // unexpectedly slow by this ratio: perhaps an outlier
constexpr double kRetried = 1.7;   // the library's estimate below which an arm gets a second chance
constexpr double kEnough = 56;     // see Enough
constexpr double kOptimism = 1.8;
// Standard errors by which the best arm must be faster to end the comparison.
constexpr double kSurely = 3.5;
constexpr double kSustain = 3;  // and to stay at all
constexpr size_t kOften = 1;
constexpr double kLooks = 2.5;
constexpr double kFirst = -1e9;  // priority before all others
constexpr uint64_t kWait = 2;
constexpr uint64_t kFirstRest = 64;
constexpr uint64_t kLongRest = 1024;
constexpr uint64_t kLongestRest = uint64_t{1} << 16;
constexpr uint64_t kProbesPerReopening = 10;
constexpr double kDrift = 0.05;

// Whether it may still turn out worth changing to.
bool Elimination::Worth(size_t arm) const {
  if (Weight(arm) >= Enough()) return false;
  const double optimistic = Mean(arm, best_) - kOptimism * Error(arm, best_);
  return optimistic < std::log(1 - options().margin) / (best_ == 0 ? 1 : 2);
}

// Whether an arm is faster than the default, corrected for the number of arms. `often`: corrected
// for repeated looks, too. Each look sees most of what the one before it saw, so the error
// probability is divided over the doublings of the evidence, 1/6 for two blocks, 1/12 for four,
// 1/20 for eight, and by kLooks for the looks between two doublings.
bool Elimination::Ahead(size_t arm, bool often) const {
  if (!Known(arm) || Mean(arm) > std::log(1 - options().margin)) return false;
  double shares = 0;
  for (size_t i = 1; i < arms_.size(); ++i) shares += Known(i) ? 1 : 0;
  if (often) {
    const double doublings = 1 + std::log2(static_cast<double>(Blocks(arm)));
    shares *= kLooks * doublings * (doublings + 1);
  }
  const double doubt = (1 - options().confidence) / shares;
  return Mean(arm) + StudentQuantile(1 - doubt, noise_.freedom()) * Error(arm) < 0;
}

// Whether the incumbent may stay: the more evidence, the clearer its advantage must be. A policy's
// arm was verified before; it only must not be slower.
bool Elimination::Sustained() const {
  if (best_ == 0 || !Known(best_)) return true;
  if (arms_[best_].from_policy) return Mean(best_) < (settled_ ? 0 : kSlower * Error(best_));
  const double errors = std::min(kSustain, std::sqrt(Weight(best_)) / 2);
  return Mean(best_) + errors * Error(best_) < 0;
}

// Whether a new sibling of it has a pending result.
bool Elimination::Awaited(size_t arm) const {
  for (size_t i = 1; i < arms_.size(); ++i) {
    if (Siblings(arm, i) && !Known(i) && arms_[i].outstanding > 0) return true;
  }
  return false;
}

std::vector<size_t> Elimination::Pick() const {
  struct Wish {
    double rank = 0;
    size_t arm = 0;
  };
  std::vector<Wish> wishes;
  std::vector<Wish> last;
  // The incumbent must be clearly faster than the default.
  if (best_ != 0 && arms_[0].outstanding == 0 && Weight(best_) < Enough() &&
      (!Known(best_) || Mean(best_) + kSurely * Error(best_) > 0)) {
    wishes.push_back({Known(best_) ? -kOptimism * Error(best_) : kFirst, 0});
  }
  for (size_t i = 1; i < arms_.size(); ++i) {
    const Arm& arm = arms_[i];
    if (arm.outstanding > 0 || i == best_) continue;
    if (arm.dropped) {
      // A single bad block may be an outlier.
      const bool again = i >= retried_.size() || !retried_[i];
      const double expected = Expected(i);
      if (again && Blocks(i) == 1 && expected > 0 && expected < kRetried &&
          (Mean(i) < std::log(kHopeless) || expected < kPromising)) {
        last.push_back({Mean(i), i});
      }
      continue;
    }
    if (Known(i)) {
      if (Worth(i)) wishes.push_back({Mean(i) - kOptimism * Error(i, best_), i});
      continue;
    }
    if (Premature(i) || Awaited(i)) continue;
    const double predicted = Predicted(i);
    const bool far = predicted > kFar || Sibling(i) > kFarSibling;
    double steps = 1;
    Sibling(i, &steps);
    (far ? last : wishes).push_back({std::log(predicted) - 0.3 + 0.01 * steps, i});
  }
  const auto by_rank = [](const Wish& a, const Wish& b) { return a.rank < b.rank; };
  std::stable_sort(wishes.begin(), wishes.end(), by_rank);
  std::stable_sort(last.begin(), last.end(), by_rank);
  std::vector<size_t> picks;
  for (const Wish& wish : wishes) {
    if (picks.size() == kArmsPerEpoch) break;
    // At most one new channel count of a pair at a time: each predicts the cost of the next.
    const bool crowded = std::any_of(picks.begin(), picks.end(), [&](size_t other) {
      return Siblings(wish.arm, other) && !Known(other);
    });
    if (crowded && !Known(wish.arm)) continue;
    picks.push_back(wish.arm);
    if (!Affordable(Between(picks, Units(picks)))) picks.pop_back();
  }
  if (picks.empty() && Outstanding() == 0) {
    for (const Wish& wish : last) {
      if (Affordable(Between({wish.arm}, kFirstUnits), 0.25)) return {wish.arm};
    }
  }
  return picks;
}

std::vector<ArmLearner::Block> Elimination::Between(const std::vector<size_t>& picks,
                                                    uint64_t units) const {
  std::vector<Block> blocks;
  blocks.push_back({best_, units});
  for (size_t i = 0; i < picks.size(); ++i) {
    // An arm that is expected to be slow gets one call to prove otherwise.
    const bool slow = !Known(picks[i]) && Predicted(picks[i]) > kPromising;
    AddTry(picks[i], slow ? 1 : units, &blocks);
    if (i % kBetween == kBetween - 1 || i + 1 == picks.size()) blocks.push_back({best_, units});
  }
  return blocks;
}

// The variance of a call's time as a multiple of the usual one; 1 at least.
double Elimination::Noisier() const {
  const double ratio = noise_.sigma() / kUsualNoise;
  return std::max(1.0, ratio * ratio);
}

// The weight of evidence after which an arm that is not better is a tie.
double Elimination::Enough() const { return kEnough * std::min(Noisier(), kMostNoisier); }

// All blocks of an epoch have the same length: the lower quartile depends on the number of samples.
// Candidates that are compared again get blocks by the evidence that there is, and thus by the
// noise.
uint64_t Elimination::Units(const std::vector<size_t>& picks) const {
  const bool first =
      std::any_of(picks.begin(), picks.end(), [&](size_t arm) { return !Known(arm); });
  if (first) return kFirstUnits;
  double least = HUGE_VAL;
  for (const size_t arm : picks) least = std::min(least, Weight(arm));
  const auto shortest = static_cast<double>(Iterations() ? kRaceIterations : kRaceUnits);
  const double longest = shortest * kLongestRace;
  return static_cast<uint64_t>(std::lround(std::clamp(kRaceShare * least, shortest, longest)));
}

std::vector<ArmLearner::Block> Elimination::Wait() {
  const uint64_t units = Iterations() ? 1 : kWait;
  const int doublings = std::min(waits_++ / 2, 8);
  return {{best_, std::max(units << doublings, LeadUnits())}};
}

std::vector<ArmLearner::Block> Elimination::Plan() {
  retried_.resize(arms_.size(), false);
  if (Outstanding() >= kMostOutstanding) return settled_ ? Rest() : Wait();
  const std::vector<size_t> picks = Pick();
  if (!picks.empty()) {
    settled_ = false;
    SetReference(best_);
    for (const size_t arm : picks) retried_[arm] = retried_[arm] || arms_[arm].dropped;
    return Between(picks, Units(picks));
  }
  if (!settled_ && Outstanding() > 0) return Wait();
  if (!settled_) Settle();
  if (probe_next_) {
    probe_next_ = false;
    // After a long rest a longer probe costs little.
    const uint64_t units = !Iterations() && rest_ >= kLongRest ? 2 * kProbeUnits : kProbeUnits;
    std::vector<size_t> others = Probed();
    while (!others.empty() && !Affordable(Between(others, units))) others.pop_back();
    if (!others.empty()) {
      SetReference(best_);
      MarkProbe();
      ++probes_;
      return Between(others, units);
    }
  }
  return Rest();
}

void Elimination::Settle() {
  settled_ = true;
  rest_ = 0;
  probe_next_ = false;
  strange_ = 0;
  if (!Sustained()) SetBest(0);
  Expect();
}

void Elimination::Expect() {
  expected_arm_ = best_ == 0 ? RunnerUp() : best_;
  expected_ = Mean(expected_arm_);
  expected_error_ = Known(expected_arm_) ? Error(expected_arm_) : 0;
}

std::vector<ArmLearner::Block> Elimination::Rest() {
  rest_ = rest_ == 0 ? kFirstRest : std::min(rest_ * 2, kLongestRest);
  probe_next_ = true;
  const uint64_t calls = strange_ != 0 ? kFirstRest : rest_;
  return {{best_, std::max<uint64_t>(1, calls / options().unit)}};
}

// The incumbent is compared with the default, and with the second best if it is close.
std::vector<size_t> Elimination::Probed() const {
  std::vector<size_t> others;
  if (best_ != 0 && Known(best_)) others.push_back(0);
  const size_t next = RunnerUp();
  if (next != 0 && (best_ == 0 || Mean(next, best_) < 2 * Error(next, best_))) {
    others.push_back(next);
  }
  return others;
}

size_t Elimination::RunnerUp() const {
  size_t found = 0;
  for (const bool dropped : {false, true}) {
    for (size_t i = 1; i < arms_.size(); ++i) {
      if (!Known(i) || i == best_ || arms_[i].dropped != dropped) continue;
      if (found == 0 || Mean(i) < Mean(found)) found = i;
    }
    if (found != 0) break;
  }
  return found;
}

void Elimination::Judge(const std::vector<Observation>& seen, bool probe) {
  waits_ = 0;
  if (probe) {
    JudgeProbe(seen);
    return;
  }
  Promote();
  Eliminate();
}

void Elimination::Promote() {
  if (!Sustained()) SetBest(0);
  for (size_t i = 1; i < arms_.size(); ++i) {
    if (i == best_ || !Ahead(i, Blocks(i) > kOften)) continue;
    if (best_ == 0 || !Known(best_)) {
      SetBest(i);
      continue;
    }
    if (Mean(i, best_) < -std::max(0.005, Error(i, best_))) SetBest(i);
  }
}

void Elimination::Eliminate() {
  for (size_t i = 1; i < arms_.size(); ++i) {
    arms_[i].dropped = i != best_ && Known(i) && Mean(i, best_) > kSlower * Error(i, best_);
  }
}

void Elimination::JudgeProbe(const std::vector<Observation>& seen) {
  double sum = 0;
  double weight = 0;
  for (const Observation& observation : seen) {
    // A block of the default beside the best arm is evidence about the best arm.
    const bool turned = observation.arm == 0 && observation.reference == expected_arm_;
    if (!turned && (observation.arm != expected_arm_ || observation.reference != 0)) continue;
    sum += (turned ? -observation.log_ratio : observation.log_ratio) * observation.weight;
    weight += observation.weight;
  }
  if (weight == 0) return;
  const double difference = sum / weight - expected_;
  const double error =
      std::sqrt(noise_.sigma() * noise_.sigma() / weight + expected_error_ * expected_error_);
  if (std::abs(difference) <= std::max(kDrift, 3 * error)) {
    strange_ = 0;
    const size_t before = best_;
    Promote();
    if (best_ != before || best_ == 0) Expect();
    return;
  }
  const int sign = difference > 0 ? 1 : -1;
  strange_ = strange_ * sign > 0 ? strange_ + sign : sign;
  if (std::abs(strange_) < 2) return;
  if (best_ != 0 && sum / weight >= 0) SetBest(0);
  if (reopened_ == 0 || probes_ - reopened_ >= kProbesPerReopening) Reopen();
}

// The machine has changed: the earlier results become mere predictions.
void Elimination::Reopen() {
  reopened_ = probes_;
  settled_ = false;
  strange_ = 0;
  for (Arm& arm : arms_) arm.dropped = false;
  Forget();
}

}  // namespace

std::unique_ptr<Learner> MakeElimination(const LearnOptions& options, const Config& incumbent,
                                         std::vector<ArmConfig> candidates) {
  return std::make_unique<Elimination>(options, incumbent, std::move(candidates));
}

}  // namespace diapason::learn
