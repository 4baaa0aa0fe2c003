#include "measure/policy_check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "base/normal.h"
#include "policy/source.h"

namespace diapason::measure {
namespace {

// No clock tells less; a gain has to be a number.
constexpr double kShortest = 1e-12;

bool Tight(const std::vector<double>& gains, double tight) {
  const Interval interval = MedianInterval95(gains);
  return interval.high - interval.low <= 2 * tight * Median(gains);
}

// One of the two that compete: its figure, and what it takes to add a round to it.
struct CheckedSide {
  Trial trial;
  TimingFigure* figure = nullptr;
  std::vector<double> fastest;

  Status Measure(Measurer* measurer, const Effort& effort, int round,
                 std::vector<dataset::Sample>* samples) {
    // The other one has just run: what it left behind is not this one's to pay for.
    trial.warmups = round == 0 ? effort.warmups : std::min(1, effort.warmups);
    trial.iterations = std::max(1, effort.iterations);
    trial.check = effort.check && round == 0;
    ASSIGN_OR_RETURN(const Measurement measured, measurer->Measure(trial));
    const Measurement& measurement = measured;
    if (samples != nullptr) {
      samples->push_back(SampleOf(trial, measurer->subject(), measurement));
      samples->back().round = round;
    }
    if (measurement.wrong >= 0) figure->wrong = measurement.wrong;
    figure->outcome = measurement.outcome;
    figure->note = measurement.note;
    if (!figure->fine()) return {};
    figure->rounds.push_back(std::max(measurement.seconds, kShortest));
    fastest.push_back(measurement.fastest);
    return {};
  }
};

// Launches count as different if their medians are this far apart, and by this many times (as a
// variance) more than the rounds of each explain.
constexpr double kApart = 1.15;
constexpr double kUnexplained = 4;
// Below this standard deviation of their gains, launches count as equal: a row that a few launches
// confirm by luck is then close to the default, and small gains could hardly be confirmed at all.
constexpr double kVaries = 0.04;
// From so many calls on, what launches vary by with all of them is used instead, as if it were
// known from as many launches more as there are other calls, up to a limit.
constexpr size_t kLeastForUsual = 4;
constexpr double kMostUsualFreedom = 16;

// The median of every launch and the variance that its own rounds give it, as logarithms.
struct LaunchGain {
  double median = 0;
  double variance = 0;
};

std::vector<LaunchGain> GainsByLaunch(const PolicyCheck& check) {
  std::map<int, std::vector<double>> logarithms;
  for (size_t i = 0; i < check.gains.size() && i < check.launches.size(); ++i) {
    logarithms[check.launches[i]].push_back(std::log(check.gains[i]));
  }
  std::vector<LaunchGain> launches;
  for (const auto& [launch, some] : logarithms) {
    // Two rounds do not show how far they scatter.
    if (some.size() < 3) continue;
    const double deviation = 1.25 * RobustDeviation(some) / std::sqrt(double(some.size()));
    launches.push_back({Median(some), deviation * deviation});
  }
  return launches;
}

bool Differ(const std::vector<LaunchGain>& launches) {
  if (launches.size() < 2) return false;
  double least = HUGE_VAL;
  double most = -HUGE_VAL;
  double mean = 0;
  for (const LaunchGain& one : launches) {
    least = std::min(least, one.median);
    most = std::max(most, one.median);
    mean += one.median / static_cast<double>(launches.size());
  }
  if (most - least < std::log(kApart)) return false;
  double surplus = 0;
  for (const LaunchGain& one : launches) {
    surplus += (one.median - mean) * (one.median - mean) / std::max(one.variance, 1e-8);
  }
  return surplus / static_cast<double>(launches.size() - 1) > kUnexplained;
}

// Of the launches, which are a sample of those to come.
void ConcludeByLaunch(const std::vector<LaunchGain>& launches, PolicyCheck* check) {
  std::vector<double> medians;
  medians.reserve(launches.size());
  for (const LaunchGain& one : launches) medians.push_back(one.median);
  const double count = static_cast<double>(medians.size());
  const double middle = Mean(medians);
  const double half = StudentQuantile975(count - 1) * StandardDeviation(medians) / std::sqrt(count);
  check->gain = std::exp(middle);
  check->interval = {std::exp(middle - half), std::exp(middle + half)};
}

// The variance of the launches' medians, in the part that their rounds explain and the rest.
struct LaunchVariance {
  double within = 0;
  double between = 0;  // negative by chance, where launches do not vary
};

LaunchVariance VarianceOf(const std::vector<LaunchGain>& launches) {
  std::vector<double> medians;
  LaunchVariance variance;
  for (const LaunchGain& one : launches) {
    medians.push_back(one.median);
    variance.within += one.variance / static_cast<double>(launches.size());
  }
  const double deviation = StandardDeviation(medians);
  variance.between = deviation * deviation - variance.within;
  return variance;
}

// Launches that do not clearly differ may still vary: what they vary by, beyond what their rounds
// explain, widens the interval. It says where the gain of launches to come lies, and rounds of the
// same few launches cannot make that narrow. What is usual counts as if it were further launches.
void WidenByLaunches(const std::vector<LaunchGain>& launches, size_t rounds,
                     const LaunchVariation& usual, PolicyCheck* check) {
  if (launches.size() < 2 || !(check->gain > 0)) return;
  const double count = static_cast<double>(launches.size());
  const auto [within, own] = VarianceOf(launches);
  const double between_freedom = count - 1 + usual.freedom;
  const double between = ((count - 1) * own + usual.freedom * usual.variance) / between_freedom;
  if (between <= (usual.freedom > 0 ? 0 : kVaries * kVaries)) return;
  const double both = between + within;
  // Welch and Satterthwaite: few launches, many rounds.
  const double freedom = both * both /
                         (between * between / between_freedom +
                          within * within / std::max(1.0, static_cast<double>(rounds) - count));
  const double half = StudentQuantile975(freedom) * std::sqrt(both / count);
  check->interval.low = std::min(check->interval.low, check->gain * std::exp(-half));
  check->interval.high = std::max(check->interval.high, check->gain * std::exp(half));
}

PolicyVerdict Judge(const PolicyCheck& check) {
  if (check.Failure() != nullptr) return PolicyVerdict::kFailed;
  if (check.gains.size() < kLeastJudgedRounds) return PolicyVerdict::kTooFewRounds;
  if (check.interval.low > 1) return PolicyVerdict::kFaster;
  if (check.interval.high < 1) return PolicyVerdict::kSlower;
  return PolicyVerdict::kNoDifference;
}

Result<PolicyCheck> MeasureOnce(Measurer* measurer, const Trial& trial, const Effort& effort,
                                std::vector<dataset::Sample>* samples) {
  PolicyCheck check;
  check.trial = trial;
  ASSIGN_OR_RETURN(check.library, MeasureFigure(measurer, trial, effort, samples));
  if (!check.library.fine()) check.verdict = PolicyVerdict::kFailed;
  return check;
}

}  // namespace

const char* PolicyVerdictName(PolicyVerdict verdict) {
  switch (verdict) {
    case PolicyVerdict::kDefault:
      return "default";
    case PolicyVerdict::kFaster:
      return "faster";
    case PolicyVerdict::kSlower:
      return "slower";
    case PolicyVerdict::kNoDifference:
      return "no difference";
    case PolicyVerdict::kTooFewRounds:
      return "too few rounds";
    case PolicyVerdict::kFailed:
      break;
  }
  return "failed";
}

const TimingFigure* PolicyCheck::Failure() const {
  if (!policy.fine()) return &policy;
  return library.fine() ? nullptr : &library;
}

LaunchVariation VariationOfLaunches(const std::vector<PolicyCheck>& checks) {
  std::vector<double> variances;
  std::vector<double> within;
  for (const PolicyCheck& check : checks) {
    const std::vector<LaunchGain> launches = GainsByLaunch(check);
    if (launches.size() < 2 || check.Failure() != nullptr) continue;
    const LaunchVariance variance = VarianceOf(launches);
    // The median of a variance with so many degrees of freedom is this part of its mean (Wilson and
    // Hilferty).
    const double freedom = static_cast<double>(launches.size() - 1);
    const double part = std::pow(1 - 2 / (9 * freedom), 3);
    variances.push_back((variance.within + variance.between) / part);
    within.push_back(variance.within);
  }
  if (variances.size() < kLeastForUsual) return {};
  // Medians: the launches of single calls may differ by far more than those of the others.
  const double freedom = std::min(static_cast<double>(variances.size() - 1), kMostUsualFreedom);
  return {std::max(0.0, Median(variances) - Median(within)), freedom};
}

void PolicyCheck::Conclude(const LaunchVariation& usual) {
  if (!gains.empty()) {
    gain = Median(gains);
    interval = MedianInterval95(gains);
    const std::vector<LaunchGain> by_launch = GainsByLaunch(*this);
    launches_differ = Differ(by_launch);
    if (launches_differ) {
      ConcludeByLaunch(by_launch, this);
    } else {
      WidenByLaunches(by_launch, gains.size(), usual, this);
    }
  }
  verdict = Judge(*this);
}

Result<PolicyCheck> CheckPolicy(Measurer* measurer, const Trial& trial, const Effort& effort,
                                std::vector<dataset::Sample>* samples) {
  if (trial.config.IsDefault()) return MeasureOnce(measurer, trial, effort, samples);
  PolicyCheck check;
  check.trial = trial;
  CheckedSide library{trial, &check.library, {}};
  library.trial.config = {};
  CheckedSide policy{trial, &check.policy, {}};
  const int least = std::min(std::max(effort.least_rounds, kLeastJudgedRounds), effort.most_rounds);
  // Real time: it is the user who waits, whatever clock the readings have.
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double> limit(2 * effort.seconds);
  for (int round = 0; round < effort.most_rounds && check.Failure() == nullptr; ++round) {
    if (round >= least &&
        (Tight(check.gains, effort.tight) || std::chrono::steady_clock::now() - begin > limit)) {
      break;
    }
    CheckedSide* const first = round % 2 == 0 ? &library : &policy;
    CheckedSide* const second = round % 2 == 0 ? &policy : &library;
    for (CheckedSide* side : {first, second}) {
      RETURN_IF_ERROR(side->Measure(measurer, effort, round, samples));
      if (!side->figure->fine()) break;
    }
    if (check.Failure() == nullptr) {
      check.gains.push_back(check.library.rounds.back() / check.policy.rounds.back());
    }
  }
  check.library.Conclude(library.fastest);
  check.policy.Conclude(policy.fastest);
  check.Conclude();
  return check;
}

PolicySummary Summarize(const std::vector<PolicyCheck>& checks) {
  PolicySummary summary;
  double logarithms = 0;
  for (size_t i = 0; i < checks.size(); ++i) {
    const PolicyCheck& check = checks[i];
    summary.wrong = summary.wrong || check.library.wrong > 0 || check.policy.wrong > 0;
    switch (check.verdict) {
      case PolicyVerdict::kDefault:
        ++summary.left_to_library;
        continue;
      case PolicyVerdict::kFailed:
        ++summary.failed;
        continue;
      case PolicyVerdict::kFaster:
        ++summary.faster;
        break;
      case PolicyVerdict::kSlower:
        ++summary.slower;
        break;
      case PolicyVerdict::kNoDifference:
        ++summary.no_difference;
        break;
      case PolicyVerdict::kTooFewRounds:
        ++summary.too_few_rounds;
        break;
    }
    if (summary.compared == 0 || check.gain < checks[summary.worst].gain) summary.worst = i;
    ++summary.compared;
    logarithms += std::log(check.gain);
  }
  if (summary.compared > 0) {
    summary.mean_gain = std::exp(logarithms / static_cast<double>(summary.compared));
  }
  return summary;
}

Status CheckNoPolicyIsSet(const Settings& settings, const Subject& subject) {
  if (!AsksTuner(subject.library) || subject.simulated) return {};
  const policy::Source source = policy::FindSource(settings);
  if (source.kind == policy::Source::Kind::kNone) return {};
  return Invalid("the environment selects the policy " + source.name +
                 ", which would replace the library's default; unset DIAPASON_POLICY, "
                 "DIAPASON_POLICY_INLINE, DIAPASON_POLICY_OVERLAP and NCCL_TUNER_CONFIG_FILE");
}

}  // namespace diapason::measure
