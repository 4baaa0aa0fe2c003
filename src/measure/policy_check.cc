#include "measure/policy_check.h"

#include <algorithm>
#include <chrono>
#include <cmath>

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

void PolicyCheck::Conclude() {
  if (!gains.empty()) {
    gain = Median(gains);
    interval = MedianInterval95(gains);
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
