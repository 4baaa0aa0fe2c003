#pragma once

#include <string>
#include <vector>

namespace diapason::mpi_tune {

// One launch of the program, as far as it is compared. 0: not known.
struct LaunchTimes {
  double iteration = 0;  // seconds: the median, of the median rank
  double program = 0;    // MPI_Init to MPI_Finalize
};

// How many times as fast the program is with the rules, from pairs of launches.
struct PairGain {
  double gain = 0;  // 0: not known
  double low = 0;   // the 95 % interval
  double high = 0;
  size_t pairs = 0;
};
// Of the logarithms of the ratios: their median of averages, and its interval. Pairs in which one
// of the two times is not known are left out; below six there is no gain.
PairGain GainOf(const std::vector<double>& defaults, const std::vector<double>& tuned);

inline constexpr size_t kLeastPairs = 6;  // below, no interval of 95 % is there
inline constexpr size_t kMostPairs = 20;

// What a comparison has found.
struct Comparison {
  std::vector<LaunchTimes> defaults;
  std::vector<LaunchTimes> tuned;
  // How many pairs there may be at most: a comparison that is looked at after every pair, and ends
  // with the first look that confirms it, needs the stronger evidence the more looks there are.
  size_t most = kMostPairs;
  PairGain iteration;
  PairGain program;
  bool gained = false;  // some look at the time that decides has shown a gain

  void Judge();
  // The time that decides: of an iteration if there are any, else of the program.
  const PairGain& Deciding() const { return iteration.gain > 0 ? iteration : program; }
  // Faster, and the program as a whole is not slower.
  bool Confirmed() const;
  // It does not look as if more pairs would confirm it.
  bool Hopeless() const;
};

}  // namespace diapason::mpi_tune
