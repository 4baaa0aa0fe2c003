#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "domain/vocabulary.h"

namespace diapason::bench {

// Another method of tuning one context (a collective of one size), as far as public text describes
// it. It asks for one call after the other and is told the time of each at once. Candidate 0 is the
// library's default. Not thread-safe.
class Rival {
 public:
  virtual ~Rival() = default;
  // The candidate of the next call. After the search this is the choice, or what the method still
  // tries.
  virtual size_t Next() = 0;
  virtual void Took(size_t candidate, double seconds) = 0;
  // What it would use from now on.
  virtual size_t Chosen() const = 0;
  // It only runs its choice from now on.
  virtual bool finished() const = 0;
};

// What a method starts from.
struct RivalTask {
  std::vector<Config> candidates;
  int repeats = 1;  // calls of a candidate before it is judged, where the method leaves that open
  uint64_t seed = 0;
};

struct RivalMaker {
  std::string name;
  std::function<std::unique_ptr<Rival>(const RivalTask&)> make;
};
// All of them, each from a file of its own:
//   coordinate descent (AutoCCL), fewest channels first (Lagom), bandit of three pairs, exhaustive
const std::vector<RivalMaker>& Rivals();

std::unique_ptr<Rival> MakeCoordinateDescent(const RivalTask& task);
std::unique_ptr<Rival> MakeFewestChannels(const RivalTask& task);
std::unique_ptr<Rival> MakePairBandit(const RivalTask& task);
std::unique_ptr<Rival> MakeExhaustive(const RivalTask& task);

// The candidates of one pair of algorithm and protocol by rising channel count; the library's own
// count (0) is the last.
struct PairLadder {
  int algorithm = 0;
  int protocol = 0;
  std::vector<size_t> candidates;
};
std::vector<PairLadder> PairLadders(const std::vector<Config>& candidates);

// Times of every candidate.
class Times {
 public:
  explicit Times(size_t candidates) : seconds_(candidates) {}
  void Add(size_t candidate, double seconds) { seconds_[candidate].push_back(seconds); }
  size_t Count(size_t candidate) const { return seconds_[candidate].size(); }
  // Infinite where there are none.
  double Mean(size_t candidate) const;
  double Median(size_t candidate) const;
  // The mean of the fastest three quarters.
  double FastMean(size_t candidate) const;

 private:
  std::vector<std::vector<double>> seconds_;
};

}  // namespace diapason::bench
