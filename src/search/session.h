#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/search.h"

namespace diapason::search {

// Standard deviations by which a contender has to be ahead of the default to be chosen instead of
// it: five to one that it is better.
inline constexpr double kClearlyAhead = 1.0;

// What every strategy needs: takes one sample after the other within the budget, files what comes
// of it, and knows whom it makes sense to ask.
class Session {
 public:
  Session(measure::Instrument* instrument, const std::vector<Contest>& contests,
          const SearchOptions& options, const Observer& observer, Knowledge* known)
      : instrument_(instrument),
        contests_(contests),
        options_(options),
        observer_(observer),
        known_(known),
        begin_(instrument->Now()) {}

  // Brings `known` into the shape of the contests, and says what is wrong with either.
  Status Prepare();
  // The budget is spent, or the observer wants no more.
  bool Over() const;
  // One sample. A contender that fails is done with; so is one of which there is nothing more to be
  // had (Instrument::Measure says kNotFound). Any other error ends the search.
  // REQUIRES: !Over()
  Status Take(size_t contest, size_t contender);
  // It has not failed and there is more of it to be had.
  bool Available(size_t contest, size_t contender) const;

  double Now() const { return instrument_->Now(); }
  int64_t taken() const { return taken_; }
  // The share of the budget that is spent; 0 where there is no limit.
  double SpentShare() const;

 private:
  measure::Instrument* instrument_;
  const std::vector<Contest>& contests_;
  const SearchOptions& options_;
  const Observer& observer_;
  Knowledge* known_;
  double begin_;
  int64_t taken_ = 0;
  bool stopped_ = false;
  std::vector<std::vector<bool>> dry_;
};

// The first mistake in contests and knowledge; fine where they belong together.
Status CheckContests(const std::vector<Contest>& contests, const Knowledge& known);

}  // namespace diapason::search
