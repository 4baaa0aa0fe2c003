#include "search/channel_cap.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/normal.h"
#include "base/stats.h"

namespace diapason::search {
namespace {

using measure::Measurement;

// Two counts are the same if they differ by less than this (log), or by nothing that the rounds
// could tell from noise and by less than the second.
constexpr double kSame = 0.012;
constexpr double kMaybeSame = 0.04;
// One place may differ by this much by chance.
constexpr double kSamePlace = 0.08;
constexpr int kLeastRounds = 4;

// Algorithms whose channels are those of the communicator.
bool HasCommonChannels(int algorithm) {
  return algorithm == kRing || algorithm == kTree || algorithm == kPat;
}

// One size at which counts are compared: candidates by count.
struct Place {
  size_t call_case = 0;
  std::map<int, size_t> counts;
};

// The pair of this case that has most counts; ring and simple where they are among them, since
// those move most bytes.
Place BestPair(const CallCase& one, size_t call_case) {
  std::map<std::tuple<int, int, int>, Place> pairs;
  for (size_t j = 1; j < one.candidates.size(); ++j) {
    const Config& config = one.candidates[j].config;
    if (config.channels <= 0 || !one.candidates[j].environment.empty() ||
        config.segment_bytes != 0 || !HasCommonChannels(config.algorithm)) {
      continue;
    }
    const int preference =
        (config.algorithm == kRing ? 2 : 0) + (config.protocol == kSimple ? 1 : 0);
    Place& place = pairs[{-preference, config.algorithm, config.protocol}];
    place.call_case = call_case;
    place.counts[config.channels] = j;
  }
  Place best;
  for (const auto& [name, place] : pairs) {
    if (place.counts.size() > best.counts.size()) best = place;
  }
  return best;
}

// A few sizes of every operation, spread over the upper two thirds: more channels need bytes to
// carry.
std::vector<Place> ChoosePlaces(const std::vector<CallCase>& call_cases, int most) {
  std::map<int, std::vector<size_t>> operations;
  for (size_t i = 0; i < call_cases.size(); ++i) {
    if (!call_cases[i].trial.workload.empty()) continue;
    operations[static_cast<int>(call_cases[i].trial.operation)].push_back(i);
  }
  std::vector<Place> places;
  for (auto& [operation, members] : operations) {
    std::sort(members.begin(), members.end(), [&](size_t a, size_t b) {
      return call_cases[a].trial.bytes < call_cases[b].trial.bytes;
    });
    std::set<size_t> chosen;
    const auto count = static_cast<double>(members.size());
    for (int k = 0; k < most; ++k) {
      const double share = 1.0 / 3 + (2.0 / 3) * (k + 0.5) / most;
      chosen.insert(members[static_cast<size_t>(std::lround(share * (count - 1)))]);
    }
    for (const size_t i : chosen) {
      Place place = BestPair(call_cases[i], i);
      if (place.counts.size() >= 2) places.push_back(std::move(place));
    }
  }
  return places;
}

// By place and count: the logarithm of the seconds, by round; not a number where it failed.
using Readings = std::vector<std::map<int, std::vector<double>>>;

// Whether `more` channels take the same time as `less`.
bool SameTime(const Readings& readings, int less, int more) {
  std::vector<double> all;
  for (const auto& place : readings) {
    const auto a = place.find(less);
    const auto b = place.find(more);
    if (a == place.end() || b == place.end()) continue;
    std::vector<double> here;
    for (size_t i = 0; i < std::min(a->second.size(), b->second.size()); ++i) {
      const double apart = b->second[i] - a->second[i];
      if (std::isfinite(apart)) here.push_back(apart);
    }
    if (here.empty()) continue;
    const double error = 1.25 * RobustDeviation(here) / std::sqrt(double(here.size()));
    if (std::fabs(Median(here)) > std::max(kSamePlace, 3 * error)) return false;
    all.insert(all.end(), here.begin(), here.end());
  }
  if (static_cast<int>(all.size()) < kLeastRounds) return false;
  const double middle = std::fabs(Median(all));
  const double error = 1.25 * RobustDeviation(all) / std::sqrt(double(all.size()));
  return middle <= kSame || (middle <= 2.6 * error && middle <= kMaybeSame);
}

int CapOf(const Readings& readings) {
  std::set<int> counts;
  for (const auto& place : readings) {
    for (const auto& [count, seconds] : place) counts.insert(count);
  }
  for (auto less = counts.begin(); less != counts.end(); ++less) {
    bool all = std::next(less) != counts.end();
    for (auto more = std::next(less); more != counts.end() && all; ++more) {
      all = SameTime(readings, *less, *more);
    }
    if (all) return *less;
  }
  return 0;
}

}  // namespace

Result<int> FindChannelCap(measure::Measurer* measurer, const std::vector<CallCase>& call_cases,
                           const ChannelProbe& probe, const MeasurementObserver& observer) {
  const std::vector<Place> places = ChoosePlaces(call_cases, probe.places);
  if (places.empty()) return 0;
  Readings readings(places.size());
  const double begin = probe.clock();
  for (int round = 0; round < probe.most_rounds; ++round) {
    const double passed = probe.clock() - begin;
    // Less than the least tells nothing, so it is no use to begin what cannot be ended.
    if (round > 0 && passed / round * std::max(round + 1, kLeastRounds) > probe.seconds) break;
    for (size_t p = 0; p < places.size(); ++p) {
      const Place& place = places[p];
      std::vector<std::pair<int, size_t>> order(place.counts.begin(), place.counts.end());
      std::rotate(order.begin(), order.begin() + round % static_cast<int>(order.size()),
                  order.end());
      for (const auto& [count, candidate] : order) {
        measure::Trial trial = call_cases[place.call_case].trial;
        trial.config = call_cases[place.call_case].candidates[candidate].config;
        ASSIGN_OR_RETURN(const Measurement measurement, measurer->Measure(trial));
        const bool fine = measurement.outcome == dataset::SampleOutcome::kFine;
        readings[p][count].push_back(fine ? std::log(std::max(measurement.seconds, 1e-12))
                                          : std::nan(""));
        if (!observer(place.call_case, candidate, measurement)) return 0;
        // Slow ranks: what half of a round has cost is all that it may cost.
        if (round == 0 && probe.clock() - begin > probe.seconds) return 0;
      }
    }
  }
  return CapOf(readings);
}

void PoolChannels(int cap, std::vector<CallCase>* call_cases, SamplesByCandidate* known) {
  if (cap <= 0) return;
  for (size_t i = 0; i < call_cases->size(); ++i) {
    CallCase& call_case = (*call_cases)[i];
    using Name = std::tuple<int, int, int64_t, std::string>;
    std::map<Name, size_t> kept;  // the place among the candidates that stay
    std::vector<Candidate> candidates;
    std::vector<CandidateSamples> samples;
    for (size_t j = 0; j < call_case.candidates.size(); ++j) {
      const Candidate& one = call_case.candidates[j];
      const Config& config = one.config;
      if (config.channels < cap || !HasCommonChannels(config.algorithm)) {
        candidates.push_back(one);
        samples.push_back((*known)[i][j]);
        continue;
      }
      const Name name{config.algorithm, config.protocol, config.segment_bytes, one.environment};
      const auto found = kept.find(name);
      if (found == kept.end()) {
        kept[name] = candidates.size();
        candidates.push_back(one);
        samples.push_back((*known)[i][j]);
        continue;
      }
      CandidateSamples& pooled = samples[found->second];
      const CandidateSamples& more = (*known)[i][j];
      pooled.seconds.insert(pooled.seconds.end(), more.seconds.begin(), more.seconds.end());
      if (pooled.outcome == dataset::SampleOutcome::kFine) pooled.outcome = more.outcome;
      candidates[found->second].config.channels =
          std::min(candidates[found->second].config.channels, config.channels);
    }
    call_case.candidates = std::move(candidates);
    (*known)[i] = std::move(samples);
  }
}

}  // namespace diapason::search
