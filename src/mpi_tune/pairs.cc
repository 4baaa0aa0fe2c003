#include "mpi_tune/pairs.h"

#include <algorithm>
#include <cmath>

#include "base/sign_flip.h"

namespace diapason::mpi_tune {
namespace {

// The least gain of an iteration that is worth a change of settings.
constexpr double kLeastGain = 1.005;
// A program that seems slower by more than this as a whole is not confirmed.
constexpr double kLeastProgram = 0.98;
// Of settings that change nothing, the share that some look takes for a gain.
constexpr double kFalseGains = 0.025;

std::vector<double> TimesOf(const std::vector<LaunchTimes>& launches, double LaunchTimes::*time) {
  std::vector<double> times;
  for (const LaunchTimes& one : launches) times.push_back(one.*time);
  return times;
}

// Of the pairs in which both times are known.
std::vector<double> LogGains(const std::vector<double>& defaults,
                             const std::vector<double>& tuned) {
  std::vector<double> logs;
  for (size_t i = 0; i < std::min(defaults.size(), tuned.size()); ++i) {
    if (defaults[i] > 0 && tuned[i] > 0) logs.push_back(std::log(defaults[i] / tuned[i]));
  }
  return logs;
}

bool AnyLookGains(const std::vector<double>& logs, size_t most) {
  SignFlipTest test(kFalseGains, static_cast<int>(std::clamp(most, logs.size(), kMostPairs)));
  return std::any_of(logs.begin(), logs.end(), [&](double log) { return test.Add(log); });
}

}  // namespace

PairGain GainOf(const std::vector<double>& defaults, const std::vector<double>& tuned) {
  const std::vector<double> logs = LogGains(defaults, tuned);
  PairGain gain;
  gain.pairs = logs.size();
  if (logs.size() < kLeastPairs) return gain;
  const ShiftEstimate shift = EstimateShift(logs);
  gain.gain = std::exp(shift.estimate);
  gain.low = std::exp(shift.low);
  gain.high = std::exp(shift.high);
  return gain;
}

void Comparison::Judge() {
  iteration =
      GainOf(TimesOf(defaults, &LaunchTimes::iteration), TimesOf(tuned, &LaunchTimes::iteration));
  program = GainOf(TimesOf(defaults, &LaunchTimes::program), TimesOf(tuned, &LaunchTimes::program));
  const auto time = iteration.gain > 0 ? &LaunchTimes::iteration : &LaunchTimes::program;
  gained = AnyLookGains(LogGains(TimesOf(defaults, time), TimesOf(tuned, time)), most);
}

bool Comparison::Confirmed() const {
  const PairGain& deciding = Deciding();
  if (!gained || deciding.gain < kLeastGain || deciding.low <= 1) return false;
  return program.gain == 0 || program.gain >= kLeastProgram;
}

bool Comparison::Hopeless() const { return Deciding().gain < kLeastGain; }

}  // namespace diapason::mpi_tune
