#include "search/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/random.h"
#include "base/stats.h"
#include "base/text.h"
#include "search/session.h"

namespace diapason::search {
namespace {

bool Tight(const CandidateSamples& evidence, const SearchOptions& options) {
  if (static_cast<int>(evidence.seconds.size()) < options.least_samples) return false;
  const Interval interval = MedianInterval95(evidence.seconds);
  return interval.high - interval.low <= 2 * options.tight * Median(evidence.seconds);
}

std::string LaunchOf(const Candidate& candidate, const SearchOptions& options) {
  if (!options.by_configuration) return candidate.environment;
  const Config& config = candidate.config;
  return candidate.environment + Format(" {} {} {} {}", config.algorithm, config.protocol,
                                        config.channels, config.segment_bytes);
}

}  // namespace

Status CheckContests(const std::vector<CallCase>& call_cases, const SamplesByCandidate& known) {
  if (known.size() != call_cases.size()) {
    return Invalid(
        Format("samples of {} cases were given for {}", known.size(), call_cases.size()));
  }
  for (size_t i = 0; i < call_cases.size(); ++i) {
    if (call_cases[i].candidates.empty()) {
      return Invalid(Format("case {} has no candidate, not even the default", i));
    }
    if (known[i].size() != call_cases[i].candidates.size()) {
      return Invalid(Format("case {}: samples of {} candidates were given for {}", i,
                            known[i].size(), call_cases[i].candidates.size()));
    }
    for (const CandidateSamples& evidence : known[i]) {
      for (const double seconds : evidence.seconds) {
        if (std::isfinite(seconds) && seconds > 0) continue;
        return Invalid(Format("case {}: an impossible time of {:g} s was given", i, seconds));
      }
    }
  }
  return {};
}

Status SearchSession::Prepare() {
  if (options_.samples < 0 || options_.seconds < 0 || std::isnan(options_.seconds)) {
    return Invalid("a search's budget cannot be negative");
  }
  if (known_->empty()) {
    for (const CallCase& call_case : call_cases_) known_->emplace_back(call_case.candidates.size());
  }
  for (const std::vector<CandidateSamples>& call_case : *known_)
    dry_.emplace_back(call_case.size());
  return CheckContests(call_cases_, *known_);
}

bool SearchSession::Over() const {
  if (stopped_) return true;
  if (options_.samples > 0 && taken_ >= options_.samples) return true;
  return options_.seconds > 0 && measurer_->Now() - begin_ >= options_.seconds;
}

double SearchSession::SpentShare() const {
  double share = 0;
  if (options_.samples > 0) {
    share = static_cast<double>(taken_) / static_cast<double>(options_.samples);
  }
  if (options_.seconds > 0) {
    share = std::max(share, (measurer_->Now() - begin_) / options_.seconds);
  }
  return share;
}

Status SearchSession::Take(size_t call_case, size_t candidate) {
  measure::Trial trial = call_cases_[call_case].trial;
  trial.config = call_cases_[call_case].candidates[candidate].config;
  trial.environment = call_cases_[call_case].candidates[candidate].environment;
  Result<measure::Measurement> measurement = measurer_->Measure(trial);
  if (!measurement.ok()) {
    if (measurement.status().code() != ErrorCode::kNotFound) return measurement.status();
    dry_[call_case][candidate] = true;
    return {};
  }
  ++taken_;
  CandidateSamples& evidence = (*known_)[call_case][candidate];
  if (measurement.value().outcome != dataset::SampleOutcome::kFine) {
    evidence.outcome = measurement.value().outcome;
  } else if (!std::isfinite(measurement.value().seconds) || measurement.value().seconds <= 0) {
    return Internal(Format("{}: a call of {} bytes is said to take {:g} s",
                           measurer_->subject().backend, trial.bytes, measurement.value().seconds));
  } else {
    evidence.seconds.push_back(measurement.value().seconds);
  }
  if (observer_ && !observer_(call_case, candidate, measurement.value())) stopped_ = true;
  return {};
}

bool SearchSession::Available(size_t call_case, size_t candidate) const {
  const CandidateSamples& evidence = (*known_)[call_case][candidate];
  return evidence.outcome == dataset::SampleOutcome::kFine && !dry_[call_case][candidate] &&
         static_cast<int>(evidence.seconds.size()) < options_.most_samples;
}

Status SearchExhaustively(measure::Measurer* measurer, const std::vector<CallCase>& call_cases,
                          const SearchOptions& options, const MeasurementObserver& observer,
                          SamplesByCandidate* known) {
  SearchSession session(measurer, call_cases, options, observer, known);
  RETURN_IF_ERROR(session.Prepare());
  const auto wanted = [&](size_t call_case, size_t candidate) {
    return session.Available(call_case, candidate) &&
           !Tight((*known)[call_case][candidate], options);
  };
  for (uint64_t round = 0; !session.Over(); ++round) {
    // Those that can run in one launch together; shuffled inside, so that no candidate always comes
    // after the same one.
    std::map<std::string, std::vector<std::tuple<uint64_t, size_t, size_t>>> launches;
    const CounterRandom random(options.seed, round);
    uint64_t draw = 0;
    for (size_t i = 0; i < call_cases.size(); ++i) {
      for (size_t j = 0; j < call_cases[i].candidates.size(); ++j) {
        ++draw;
        if (!wanted(i, j)) continue;
        launches[LaunchOf(call_cases[i].candidates[j], options)].emplace_back(random.Bits(draw), i,
                                                                              j);
      }
    }
    if (launches.empty()) break;
    for (auto& [launch, order] : launches) {
      std::sort(order.begin(), order.end());
      for (int again = 0; again < std::max(1, options.visit); ++again) {
        for (const auto& [place, call_case, candidate] : order) {
          if (session.Over()) return {};
          if (!wanted(call_case, candidate)) continue;
          RETURN_IF_ERROR(session.Take(call_case, candidate));
        }
      }
    }
  }
  return {};
}

}  // namespace diapason::search
