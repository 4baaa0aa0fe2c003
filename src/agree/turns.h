#pragma once

#include <cstdint>

#include "agree/store.h"

namespace diapason::agree {

// The turns of a job in which the library's default and a policy are compared: which of the two
// every context of every communicator should run now. Turn n begins with the cell "turn.n"; turn 0
// has none. Each process that leads a communicator looks at the cells; the first one that finds the
// present turn old enough writes the next cell, so that no process is needed for the turns to go
// on. The turns follow the pattern default, policy, policy, default: a machine that slows down
// steadily then favours neither.
//
// A turn is a wish: contexts follow it with the next epochs that they agree on. What runs for a
// call is said by the epochs alone. Not thread-safe.
class Turns {
 public:
  // `seconds`: how long a turn lasts.
  Turns(CellStore* store, double seconds) : store_(store), seconds_(seconds) {}

  // Reads on from where the last call ended, and begins the next turn if it is time. `now` is a
  // steady clock in seconds. Looks at the store only now and then; an error leaves the known turn
  // unchanged.
  Status Look(double now);

  uint64_t number() const { return number_; }
  bool is_policy() const { return number_ % 4 == 1 || number_ % 4 == 2; }

 private:
  void Begin(double now);

  CellStore* const store_;
  const double seconds_;
  uint64_t number_ = 0;
  double since_ = 0;  // when this process first saw the present turn; 0: before the first look
  double next_look_ = 0;
};

}  // namespace diapason::agree
