#pragma once

#include <vector>

#include "dataset/summary.h"

namespace diapason::model {

// The samples of one configuration at one size, as if all were of one run and day.
struct AlignedSamples {
  std::vector<double> seconds;
  // Whether they can be compared with the library's own choice: it was measured in the same run and
  // on the same day, or there is only one.
  bool paired = true;
};

// Makes samples of several runs and days comparable: each is multiplied so that the library's own
// choice of its run and day takes as long as it does on average. Where the library's own choice is
// known in some of them, samples of the others are left out, unless the configuration has no other;
// then it is not paired. Imported tables without times whose sources have either the library's own
// choice or the others are taken as one measurement.
struct AlignedGroup {
  std::vector<AlignedSamples> entries;  // of the group, in its order
  size_t left_out = 0;                  // samples
  bool apart = false;                   // the library's own choice shares no run with any other
};
AlignedGroup AlignRuns(const dataset::ConfigGroup& group);

}  // namespace diapason::model
