#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/search.h"

namespace diapason::search {

// Standard deviations by which a candidate has to be ahead of the default to be chosen instead of
// it: five to one that it is better.
inline constexpr double kClearlyAhead = 1.0;

// What every strategy needs: takes samples one by one within the budget, records them, and knows
// which candidates can still be sampled.
class SearchSession {
 public:
  SearchSession(measure::Measurer* measurer, const std::vector<CallCase>& call_cases,
                const SearchOptions& options, const MeasurementObserver& observer,
                SamplesByCandidate* known)
      : measurer_(measurer),
        call_cases_(call_cases),
        options_(options),
        observer_(observer),
        known_(known),
        begin_(measurer->Now()) {}

  // Resizes `known` to the cases; an error if the two do not fit.
  Status Prepare();
  // The budget is spent, or the observer wants no more.
  bool Over() const;
  // One sample. A candidate that fails is done with; so is one of which there is nothing more to be
  // had (Measurer::Measure says kNotFound). Any other error ends the search.
  // REQUIRES: !Over()
  Status Take(size_t call_case, size_t candidate);
  // It has not failed and there is more of it to be had.
  bool Available(size_t call_case, size_t candidate) const;

  double Now() const { return measurer_->Now(); }
  int64_t taken() const { return taken_; }
  // The share of the budget that is spent; 0 where there is no limit.
  double SpentShare() const;

 private:
  measure::Measurer* measurer_;
  const std::vector<CallCase>& call_cases_;
  const SearchOptions& options_;
  const MeasurementObserver& observer_;
  SamplesByCandidate* known_;
  double begin_;
  int64_t taken_ = 0;
  bool stopped_ = false;
  std::vector<std::vector<bool>> dry_;
};

// The first mistake in the cases and their samples; fine if they fit.
Status CheckContests(const std::vector<CallCase>& call_cases, const SamplesByCandidate& known);

}  // namespace diapason::search
