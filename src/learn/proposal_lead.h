#pragma once

#include <cstdint>

namespace diapason::learn {

// How many calls ahead rank 0 has to propose epochs, so that no rank enters an epoch whose cell is
// still empty. A proposal takes a time (the learning thread wakes up, reads results, writes the
// cell), and the job goes on calling meanwhile: the calls made during a proposal are the product of
// call rate and latency, and are measured as such. Not thread-safe.
class ProposalLead {
 public:
  // A proposal stood after the job had made so many calls since the proposal was due.
  void Proposed(uint64_t calls_meanwhile);
  // A proposal came too late: a rank had entered the epoch before it stood.
  void Late();
  // The calls that must be agreed on beyond the present epoch.
  uint64_t calls() const;

 private:
  double most_ = 0;  // calls during a proposal: the most of the recent ones
};

}  // namespace diapason::learn
