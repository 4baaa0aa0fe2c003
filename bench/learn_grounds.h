#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "learn/learner.h"

namespace diapason::learn {

// A context to learn in: what every arm truly takes, and how times vary around that.
struct Ground {
  struct Arm {
    Config config;
    double estimate = 0;  // the library's own, as a multiple of the default's
    double ratio = 1;     // the true mean time as a multiple of the default's
    bool later = false;   // added when its pair has been tried, see `staged`
    // A call takes one of these times the true mean.
    std::vector<float> factors;
    // When rank 0 has ended a call, against the other ranks, as a multiple of the default's time.
    double offset = 0;
  };
  std::string name;
  std::vector<Arm> arms;  // the library's default first
  // All arms together become slower and faster: the deviation of the logarithm.
  double drift = 0;
  // As in the plugin, a pair with fewer channels is added when the pair has been tried.
  bool staged = false;
  // How many ranks tell times: all, or rank 0 alone, as with iterations.
  int reporting = 4;

  double BestRatio() const;
};

struct DataSet {
  std::string name;
  std::string what;  // where the numbers come from, for the reader
  std::vector<Ground> grounds;
};

inline constexpr size_t kMostArms = 12;   // the default among them
inline constexpr size_t kFactors = 4096;  // of an arm, where they are made up

// Whether a pair has its usual number of channels. The library has no estimate for others.
bool Usual(const Config& config, const std::vector<Config>& configs);

// Simulated clusters; log-normal noise of 5 %, one call in a hundred takes 2 to 5 times as long.
// allreduce, allgather and reducescatter on five clusters, 1 KiB to 16 MiB: what the constants of
// the strategy were chosen with, as they were with the recorded tables and the laboratory's.
Result<DataSet> SimulatedGrounds();
// Other clusters, broadcast and reduce among the collectives, and sizes in between: what they were
// not chosen with.
Result<DataSet> HeldOutGrounds();
// A table of measurements with repeats: a call takes the median of its arm times what some sample
// of the context (of any arm) was off its own arm's median. `own`: it takes one of its own arm's
// samples, and their mean is the truth. One hiccup among the few samples of an arm then makes the
// arm slow for good, which lower quartiles do not show.
Result<DataSet> RecordedGrounds(const std::string& path, const std::string& name, bool own);
// The same medians as calls of a job see them: every time is also subject to drift and to spikes of
// 3 to 15 times (2 % of the calls), and candidates with fewer channels come later.
struct JobNoise {
  double noise = 0;             // the deviation of the logarithm of a further factor
  int reporting = 4;            // see Ground; of rank 0 alone: each arm has an offset
  bool nothing_faster = false;  // many tie with the default: any other choice is a mistake
};
Result<DataSet> JobGrounds(const std::string& path, const std::string& name, const JobNoise& job);
// Default and best as a table of the laboratory has them, beside wrong choices of 2 to 7 times.
Result<DataSet> TableGrounds(const std::string& path);

}  // namespace diapason::learn
