#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace diapason::learn {

// Finds the iterations of a program in its calls. A training step repeats the same calls in the
// same order; the position in the cycle with the longest pause before it is taken as the start.
class IterationFinder {
 public:
  // `longest` period, in calls.
  explicit IterationFinder(size_t longest = 1024);

  // A call of this kind (a hash of communicator, collective, size) began at this time (seconds of
  // any steady clock). True if an iteration begins with this call.
  bool Call(uint64_t kind, double time);
  // Calls per iteration; 0: no period is known. A period of 1 is reported too.
  size_t period() const { return period_; }

 private:
  // Searches the newest calls for a period.
  void Look();
  void Adopt(size_t period, size_t covered);
  // Whether the newest calls are one whole iteration, from start to end.
  bool EndsHere() const;
  // The number of calls that a search examines.
  uint64_t Window() const;
  uint64_t KindAt(uint64_t index) const { return kinds_[index % kinds_.size()]; }
  double TimeAt(uint64_t index) const { return times_[index % times_.size()]; }

  size_t longest_;
  size_t period_ = 0;
  size_t place_ = 0;      // position of the next call in the cycle, while in step
  bool in_step_ = false;  // false: an unexpected call came
  bool lasting_ = false;  // the period held for long before that, so it is kept
  uint64_t strayed_ = 0;  // calls out of step since the last whole iteration
  uint64_t stepped_ = 0;  // consecutive calls in step
  uint64_t count_ = 0;
  uint64_t origin_ = 0;  // calls before it are ignored
  uint64_t next_look_ = 0;
  std::vector<uint64_t> cycle_;  // the calls of an iteration, from its start
  std::vector<uint64_t> kinds_;  // the newest calls, a ring
  std::vector<double> times_;
};

}  // namespace diapason::learn
