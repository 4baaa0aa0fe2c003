#pragma once

#include <string>
#include <vector>

#include "compare/comparison.h"

namespace diapason::compare {

// Fresh launches compared with old measurements until every call is decided. The caller launches
// and measures; this class says when to look, and when to stop. Each look may be the last, so the
// chance of a wrong verdict is divided between the looks: each has kAlpha / 5.
class Against {
 public:
  // Looks after this many launches; the last is the most there are.
  static constexpr size_t kLooks[] = {3, 5, 8, 12, 20};
  static constexpr size_t kLookCount = 5;
  static constexpr size_t kMostLaunches = 20;

  // REQUIRES: 1 <= most_launches <= kMostLaunches.
  Against(Side before, CompareOptions options, size_t most_launches);

  // The calls to measure: those of the old side that have a time, in their order of comparison.
  std::vector<dataset::Point> Calls() const;
  // What one launch measured: all runs of `contents` are of it.
  void Add(const dataset::StoreContents& contents, const std::string& name);
  // Whether no further launch is wanted. `Why` says the reason then.
  bool Done();
  // Ends it: the result says what is known so far. `why`: "the budget of 2m 00s is spent".
  void Stop(const std::string& why);
  const std::string& Why() const { return why_; }
  size_t launches() const { return after_.launches.size(); }
  // REQUIRES: a launch was added.
  Comparison Result() const;

 private:
  Side before_;
  Side after_;
  CompareOptions options_;
  size_t most_;
  std::string why_;
};

}  // namespace diapason::compare
