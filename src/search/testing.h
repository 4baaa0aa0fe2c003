#pragma once

// A machine with known times for the tests of searches.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "search/search.h"

namespace diapason::search {

using dataset::SampleOutcome;

// Times from a function, with noise by a counter; remembers what it was asked.
class FakeInstrument : public measure::Measurer {
 public:
  using Times = std::function<double(const measure::Trial&)>;
  explicit FakeInstrument(Times times, double noise = 0) : times_(std::move(times)), noise_(noise) {
    subject_.ranks = 8;
  }

  Result<measure::Measurement> Measure(const measure::Trial& trial) override {
    asked.push_back(trial);
    if (stuck && stuck(trial)) return NotFound("no more");
    if (broken && broken(trial)) return Unavailable("the cluster is gone");
    measure::Measurement measurement;
    measurement.iterations = 1;
    measurement.seconds = times_(trial) * std::exp(noise_ * random_.Normal(asked.size()));
    if (fails && fails(trial)) {
      measurement.outcome = SampleOutcome::kHang;
      measurement.seconds = 1e-9;  // a liar
    }
    if (disturbed && disturbed(trial, asked.size())) measurement.seconds *= 4;
    now_ += measurement.seconds;
    return measurement;
  }
  const measure::Subject& subject() const override { return subject_; }
  double Now() const override { return now_; }

  std::vector<measure::Trial> asked;
  std::function<bool(const measure::Trial&)> stuck, broken, fails;
  std::function<bool(const measure::Trial&, size_t)> disturbed;

 private:
  measure::Subject subject_;
  Times times_;
  double noise_;
  CounterRandom random_{42, 0};
  double now_ = 100;
};

inline Candidate Of(int algorithm, int protocol, int channels, std::string environment = "") {
  return {{algorithm, protocol, channels, 0}, std::move(environment)};
}

// The default, and two pairs with five channel counts each, for sizes from 1 KiB on.
inline std::vector<CallCase> Grid(int sizes) {
  std::vector<CallCase> call_cases;
  for (int i = 0; i < sizes; ++i) {
    CallCase call_case;
    call_case.trial.bytes = uint64_t{1024} << i;
    call_case.candidates.push_back({});
    for (const int algorithm : {kTree, kRing}) {
      for (const int channels : {1, 2, 4, 8, 16}) {
        call_case.candidates.push_back(Of(algorithm, kSimple, channels));
      }
    }
    call_cases.push_back(call_case);
  }
  return call_cases;
}

// Latency and bandwidth; trees start sooner, rings carry more; the default is a tree of 4 channels.
inline double Modelled(const measure::Trial& trial) {
  const bool ring = trial.config.algorithm == kRing;
  const int channels = trial.config.channels > 0 ? trial.config.channels : 4;
  const double start = (ring ? 30e-6 : 8e-6) * (1 + 0.02 * channels);
  return start + static_cast<double>(trial.bytes) / (channels * (ring ? 4e9 : 2e9));
}

inline double TimeOf(const CallCase& call_case, size_t candidate) {
  measure::Trial trial = call_case.trial;
  trial.config = call_case.candidates[candidate].config;
  trial.environment = call_case.candidates[candidate].environment;
  return Modelled(trial);
}

inline double BestTime(const CallCase& call_case) {
  double best = INFINITY;
  for (size_t i = 0; i < call_case.candidates.size(); ++i) {
    best = std::min(best, TimeOf(call_case, i));
  }
  return best;
}

inline size_t SamplesIn(const SamplesByCandidate& known) {
  size_t sum = 0;
  for (const auto& call_case : known) {
    for (const CandidateSamples& evidence : call_case) sum += evidence.seconds.size();
  }
  return sum;
}

inline SamplesByCandidate Nothing(const std::vector<CallCase>& call_cases) {
  SamplesByCandidate known;
  for (const CallCase& call_case : call_cases) known.emplace_back(call_case.candidates.size());
  return known;
}

}  // namespace diapason::search
