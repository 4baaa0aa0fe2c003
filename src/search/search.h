#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "measure/measurer.h"

namespace diapason::search {

// One way to run a call.
struct Contender {
  Config config;
  std::string environment;
  friend bool operator==(const Contender&, const Contender&) = default;
};

// Contenders that compete for one call: one collective, one size. The first is the library's
// default and always takes part.
struct Contest {
  measure::Trial trial;  // its config and environment are replaced by the contender's
  std::vector<Contender> contenders;
};

// What is known of one contender in one contest.
struct Evidence {
  std::vector<double> seconds;
  // It hangs, crashes, computes wrong results or is not on offer: it is not asked again.
  dataset::Outcome outcome = dataset::Outcome::kFine;
};
// By contest, then by contender.
using Knowledge = std::vector<std::vector<Evidence>>;

struct SearchOptions {
  int64_t samples = 0;    // 0: no limit
  double seconds = 0;     // on the instrument's clock; 0: no limit
  int least_samples = 3;  // exhaustive: of every contender, before it may be tight
  int most_samples = 20;
  double tight = 0.02;  // exhaustive: half the 95 % interval of the median, as a share of it
  // Exhaustive: how often a contender is sampled when its turn comes. More than once where going
  // from one environment to another costs a launch.
  int visit = 1;
  // Exhaustive: a launch for every configuration, so all its calls come together.
  bool by_configuration = false;
  uint64_t seed = 1;
};

// Sees every reading as it comes. Returning false ends the search in good order (Ctrl-C).
using Observer = std::function<bool(size_t contest, size_t contender, const measure::Reading& reading)>;

// Samples every contender in interleaved rounds, so that drift hits all alike, until each interval
// is tight or the budget is spent. `known` holds what earlier runs have measured and what this one
// adds.
Status SearchExhaustively(measure::Instrument* instrument, const std::vector<Contest>& contests,
                          const SearchOptions& options, const Observer& observer, Knowledge* known);

// Spends samples where the winner is undecided; see search_adaptive.cc for how. The default is
// never eliminated.
Status SearchAdaptively(measure::Instrument* instrument, const std::vector<Contest>& contests,
                        const SearchOptions& options, const Observer& observer, Knowledge* known);

// What the evidence says about one contest.
struct Verdict {
  size_t best = 0;      // the contender to choose; 0 where nothing beats the default
  double seconds = 0;   // what it is believed to take
  double against = 0;   // what the default is believed to take
  bool decided = true;  // false: the data do not tell best from default
};
// In the order of the contests.
std::vector<Verdict> Judge(const std::vector<Contest>& contests, const Knowledge& known);

}  // namespace diapason::search
