// Two parts of a tuning that measure the same few things in turns: the probe of channel counts
// before the search, and the final round after it.
#include <algorithm>

#include "search/channel_cap.h"
#include "tune/session_state.h"

namespace diapason::tune {
namespace {

using measure::Measurement;

// The share of the budget for the probe, and the fewest samples with which there is one.
constexpr double kProbeShare = 0.03;
constexpr int64_t kLeastProbed = 400;
// The final round is spread over so many launches, unless they cost more than this share of the
// budget.
constexpr int kFinalLaunches = 3;
constexpr double kFinalLaunchShare = 0.08;

}  // namespace

Status TuneSession::PoolSameChannels() {
  if (Iterations()) return {};
  search::ChannelProbe probe;
  probe.clock = options_.clock;
  probe.seconds = options_.seconds * kProbeShare;
  // Counts end a tuning of so many samples, not time: few are not spent on this.
  if (options_.samples > 0 && options_.samples < kLeastProbed) return {};
  if (options_.samples > 0) probe.most_rounds = 4;
  const Result<int> cap = search::FindChannelCap(
      marked_.get(), call_cases_, probe,
      [&](size_t call_case, size_t candidate, const Measurement& measurement) {
        search::CandidateSamples& evidence = known_[call_case][candidate];
        if (measurement.outcome == dataset::SampleOutcome::kFine) {
          evidence.seconds.push_back(measurement.seconds);
        } else {
          evidence.outcome = measurement.outcome;
        }
        return Take(call_case, candidate, measurement);
      });
  for (const Status& status : {trouble_, cap.status()}) RETURN_IF_ERROR(status);
  outcome_.channel_cap = cap.value();
  search::PoolChannels(cap.value(), &call_cases_, &known_);
  taken_.clear();
  return {};
}

int TuneSession::FinalLaunches() const {
  if (!options_.relaunch) return 1;
  const double affordable = options_.seconds * kFinalLaunchShare / std::max(launch_seconds_, 1e-3);
  return std::clamp(static_cast<int>(affordable), 1, kFinalLaunches);
}

Status TuneSession::RunFinal(FinalRound* round, size_t first_case, int launches, double until,
                             size_t samples_per_round) {
  FinalRoundOptions options;
  options.clock = options_.clock;
  const int most = Rounds(samples_per_round, options.least_rounds, options.most_rounds);
  options.most_rounds = (most + launches - 1) / launches;
  options.least_rounds = (options.least_rounds + launches - 1) / launches;
  double spent = 0;  // by the last launch
  for (int launch = 0; launch < launches && !stopped_; ++launch) {
    if (launch > 0) {
      if (Passed() + spent > until && options_.samples == 0) break;
      RETURN_IF_ERROR(StartAgain());
      Calibrate(true);
    }
    const double began = Passed();
    options.seconds = std::max(0.1, (until - began) / (launches - launch));
    RETURN_IF_ERROR(
        round->Run(marked_.get(), options,
                   [&](size_t call_case, size_t candidate, const Measurement& measurement) {
                     search::CandidateSamples& evidence = known_[first_case + call_case][candidate];
                     if (measurement.outcome == dataset::SampleOutcome::kFine) {
                       evidence.seconds.push_back(measurement.seconds);
                     } else {
                       evidence.outcome = measurement.outcome;
                     }
                     return Take(first_case + call_case, candidate, measurement);
                   }));
    RETURN_IF_ERROR(trouble_);
    spent = Passed() - began;
  }
  return {};
}

}  // namespace diapason::tune
