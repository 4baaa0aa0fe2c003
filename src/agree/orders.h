#pragma once

#include <cstdint>
#include <string>

#include "agree/store.h"

namespace diapason::agree {

// What a program outside a job, which searches for its best configurations, wants the job to run:
// cells "order.1", "order.2" and so on, of which the last one that stands counts. The program
// appends, and every process that leads a communicator reads. An order is a wish, as a turn is
// (turns.h): contexts follow it with the next epochs that they agree on, and what runs for a call
// is said by the epochs alone. A job begins without an order. Not thread-safe.
class OrderLog {
 public:
  explicit OrderLog(CellStore* store) : store_(store) {}

  // Reads on from where the last call ended, every few milliseconds at most; `now` is a steady
  // clock in seconds. An error leaves the known order unchanged.
  Status Look(double now);
  uint64_t number() const { return number_; }  // 0: there is none yet
  const std::string& text() const { return text_; }

  // Appends an order. REQUIRES: one program at a time; a second one is an error here.
  Status Give(const std::string& text);

 private:
  CellStore* const store_;
  uint64_t number_ = 0;
  std::string text_;
  double next_look_ = 0;
};

}  // namespace diapason::agree
