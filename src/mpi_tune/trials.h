#pragma once

#include <vector>

#include "domain/decision.h"

namespace diapason::mpi_tune {

// A configuration in the program itself.
struct InProgram {
  Config config;
  double seconds = 0;  // of one call: the median of a launch, mean over launches
  // By the last launch with the default before it: a busy machine slows both. Geometric mean.
  double ratio = 1;
  int launches = 0;
};

// What launches of the program say about the configurations of its contexts. A launch tries one
// configuration of every context at once: each context's calls are timed by themselves.
class Trials {
 public:
  explicit Trials(size_t contexts) : tried_(contexts), last_default_(contexts) {}

  // A launch in which the contexts had these configurations, and the seconds of a call of each; 0:
  // the launch had no such call.
  void Add(const std::vector<Config>& configs, const std::vector<double>& seconds);

  // By context, the default first.
  const std::vector<std::vector<InProgram>>& tried() const { return tried_; }
  // The n-th best configuration of each context; default where there are no more that take at most
  // `most_ratio` of the default's time.
  std::vector<Config> Best(size_t n, double most_ratio) const;

 private:
  std::vector<std::vector<InProgram>> tried_;
  std::vector<double> last_default_;  // seconds of a call, by context
};

// By context: what finals say about a configuration, and what a screening says about the others. A
// screening tries many configurations once, and the best of them were also lucky: where finals have
// tried them again, these launches alone count. The default first, then finals, the fastest first.
std::vector<std::vector<InProgram>> FinalsFirst(const Trials& finals, const Trials& screening);

bool AllDefault(const std::vector<Config>& configs);

}  // namespace diapason::mpi_tune
