#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace diapason::learn {

// Finds the iterations of a program in the calls it makes. A training step repeats the same calls
// in the same order; the place in the cycle before which the program pauses longest is taken as its
// beginning.
class IterationFinder {
 public:
  // `longest`: of a period, in calls.
  explicit IterationFinder(size_t longest = 1024);

  // A call of this kind (communicator, collective, size: a hash) began at this time (seconds, of
  // any steady clock). True when an iteration begins with this call.
  bool Call(uint64_t kind, double time);
  // Calls per iteration; 0: no period is known. A period of 1 is reported like any other.
  size_t period() const { return period_; }

 private:
  // Searches the newest calls for a period.
  void Look();
  void Adopt(size_t period, size_t covered);
  // Whether the newest calls are one whole iteration, from its beginning to its end.
  bool EndsHere() const;
  // The calls that a search looks at.
  uint64_t Window() const;
  uint64_t KindAt(uint64_t index) const { return kinds_[index % kinds_.size()]; }
  double TimeAt(uint64_t index) const { return times_[index % times_.size()]; }

  size_t longest_;
  size_t period_ = 0;
  size_t place_ = 0;      // of the next call in the cycle, while in step
  bool in_step_ = false;  // false: a call came that was not expected
  bool lasting_ = false;  // and before it, the period had held for long: it will come back
  uint64_t strayed_ = 0;  // calls out of step since the last whole iteration
  uint64_t stepped_ = 0;  // calls in step without a break
  uint64_t count_ = 0;
  uint64_t origin_ = 0;  // calls before it say nothing any more
  uint64_t next_look_ = 0;
  std::vector<uint64_t> cycle_;  // the calls of an iteration, from its beginning
  std::vector<uint64_t> kinds_;  // the newest calls, a ring
  std::vector<double> times_;
};

}  // namespace diapason::learn
