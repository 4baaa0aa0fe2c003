#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "measure/measurer.h"

namespace diapason::search {

// One way to run a call.
struct Candidate {
  Config config;
  std::string environment;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// Contenders that compete for one call: one collective, one size. The first is the library's
// default and always takes part.
struct CallCase {
  measure::Trial trial;  // its config and environment are replaced by the candidate's
  std::vector<Candidate> candidates;
};

// What is known of one candidate in one case.
struct CandidateSamples {
  std::vector<double> seconds;
  // It hangs, crashes, computes wrong results or is not on offer: it is not asked again.
  dataset::SampleOutcome outcome = dataset::SampleOutcome::kFine;
};
// By case, then by candidate.
using SamplesByCandidate = std::vector<std::vector<CandidateSamples>>;

struct SearchOptions {
  int64_t samples = 0;    // 0: no limit
  double seconds = 0;     // on the measurer's clock; 0: no limit
  int least_samples = 3;  // exhaustive: of every candidate, before it may be tight
  int most_samples = 20;
  double tight = 0.02;  // exhaustive: half the 95 % interval of the median, as a share of it
  // Exhaustive: how often a candidate is sampled when its turn comes. More than once where going
  // from one environment to another costs a launch.
  int visit = 1;
  // Exhaustive: a launch for every configuration, so all its calls come together.
  bool by_configuration = false;
  uint64_t seed = 1;
};

// Sees every reading as it comes. Returning false ends the search in good order (Ctrl-C).
using MeasurementObserver = std::function<bool(size_t call_case, size_t candidate,
                                               const measure::Measurement& measurement)>;

// Samples every candidate in interleaved rounds, so that drift hits all alike, until each interval
// is tight or the budget is spent. `known` holds what earlier runs have measured and what this one
// adds.
Status SearchExhaustively(measure::Measurer* measurer, const std::vector<CallCase>& call_cases,
                          const SearchOptions& options, const MeasurementObserver& observer,
                          SamplesByCandidate* known);

// Spends samples where the winner is undecided; see search_adaptive.cc for how. The default is
// never eliminated.
Status SearchAdaptively(measure::Measurer* measurer, const std::vector<CallCase>& call_cases,
                        const SearchOptions& options, const MeasurementObserver& observer,
                        SamplesByCandidate* known);

// What the evidence says about one case.
struct CaseVerdict {
  size_t best = 0;      // the candidate to choose; 0 where nothing beats the default
  double seconds = 0;   // what it is believed to take
  double against = 0;   // what the default is believed to take
  bool decided = true;  // false: the data do not tell best from default
};
// In the order of the cases.
std::vector<CaseVerdict> Judge(const std::vector<CallCase>& call_cases,
                               const SamplesByCandidate& known);

}  // namespace diapason::search
