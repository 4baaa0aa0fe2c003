#include "measure/bench.h"

#include <algorithm>
#include <chrono>

#include "domain/collectives.h"

namespace diapason::measure {
namespace {

bool Tight(const std::vector<double>& rounds, double tight) {
  const Interval interval = MedianInterval95(rounds);
  return interval.high - interval.low <= 2 * tight * Median(rounds);
}

}  // namespace

Result<TimingFigure> MeasureFigure(Measurer* measurer, Trial trial, const Effort& effort,
                                   std::vector<dataset::Sample>* samples) {
  TimingFigure figure;
  std::vector<double> fastest;
  // Real time: it is the user who waits, whatever clock the readings have.
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < effort.most_rounds; ++round) {
    if (round >= effort.least_rounds && Tight(figure.rounds, effort.tight)) break;
    if (round > 0 &&
        std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(effort.seconds))
      break;
    trial.warmups = round == 0 ? effort.warmups : 0;
    trial.iterations = std::max(1, effort.iterations);
    trial.check = effort.check && round == 0;
    ASSIGN_OR_RETURN(const Measurement measurement, measurer->Measure(trial));
    if (samples != nullptr) {
      samples->push_back(SampleOf(trial, measurer->subject(), measurement));
      samples->back().round = round;
    }
    if (measurement.wrong >= 0) figure.wrong = measurement.wrong;
    if (measurement.outcome != dataset::SampleOutcome::kFine) {
      figure.outcome = measurement.outcome;
      figure.note = measurement.note;
      return figure;
    }
    figure.rounds.push_back(measurement.seconds);
    fastest.push_back(measurement.fastest);
  }
  figure.Conclude(fastest);
  return figure;
}

void TimingFigure::Conclude(const std::vector<double>& of_fastest_rank) {
  if (rounds.empty()) return;
  mean = Mean(rounds);
  median = Median(rounds);
  interval = MedianInterval95(rounds);
  if (!of_fastest_rank.empty()) fastest = Median(of_fastest_rank);
}

double AlgBandwidth(const Trial& trial, double seconds) {
  return seconds > 0 ? static_cast<double>(trial.bytes) / seconds : 0;
}

double BusBandwidth(const Trial& trial, int ranks, double seconds) {
  return AlgBandwidth(trial, seconds) * BusFactor(trial.operation, ranks);
}

double IdealSeconds(const Trial& trial, int ranks, double link) {
  if (!(link > 0)) return 0;
  return static_cast<double>(trial.bytes) * BusFactor(trial.operation, ranks) / link;
}

}  // namespace diapason::measure
