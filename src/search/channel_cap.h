#pragma once

#include <vector>

#include "base/status.h"
#include "search/search.h"

namespace diapason::search {

// A number of channels that a tuner asks for is an upper bound: a communicator that has fewer runs
// those. All counts above its own are then one configuration under several names. Measured apart,
// they share the samples that one of them should have, and the luckiest of them looks like the
// fastest. The library does not say how many it has, so it is found out by measuring.

struct ChannelProbe {
  double seconds = 10;  // on the clock below
  int most_rounds = 12;
  int places = 3;  // sizes per operation at which counts are compared
  std::function<double()> clock;
};

// The smallest count from which on all larger ones take the same time, wherever they were compared;
// 0: nothing is known, or the largest count differs from the one before it. Compares in interleaved
// rounds, in a few sizes of every operation, with one algorithm and protocol that has all counts.
// An error: no more measuring is possible.
Result<int> FindChannelCap(measure::Measurer* measurer, const std::vector<CallCase>& call_cases,
                           const ChannelProbe& probe, const MeasurementObserver& observer);

// Keeps one of the candidates with `cap` channels or more, of each algorithm and protocol: the one
// with the least. Its samples are those of all of them; a failure of one is a failure of it.
// Algorithms with channels of their own (NVLS, CollNet) are left as they are.
void PoolChannels(int cap, std::vector<CallCase>* call_cases, SamplesByCandidate* known);

}  // namespace diapason::search
