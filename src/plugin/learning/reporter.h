#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agree/epochs.h"
#include "agree/store.h"
#include "learn/rewards.h"

namespace diapason::plugin {

// One rank's part in a context's rewards: what its calls took, by epoch. Where all ranks measure,
// the others put their results of an epoch that is over into the store, where rank 0 finds them.
class Reporter {
 public:
  Reporter(agree::CellStore* store, std::string prefix, int rank);

  void Entered(const agree::EpochLog::Epoch& epoch, double now);
  // What calls [first, end) took.
  void Credit(uint64_t first, uint64_t end, double seconds);

  struct Finished {
    uint32_t epoch = 0;
    bool timed = false;
    std::vector<learn::SegmentResult> results;
  };
  // Epochs that are over: left behind, and their last call's time is here or will not come.
  std::vector<Finished> TakeFinished(double now, double patience);
  // For ranks other than 0. Errors are no matter: rank 0 then has one result less.
  void Post(const Finished& finished);

  // Where rank `rank` puts its results.
  static std::string ResultsKey(const std::string& prefix, uint32_t epoch, int rank);

 private:
  struct Open {
    uint64_t end = 0;
    double left = 0;  // when the next epoch was entered; 0: it is the newest
    bool timed = false;
  };
  agree::CellStore* store_;
  const std::string prefix_;
  const int rank_;
  learn::SampleBook book_;
  std::map<uint32_t, Open> open_;
  uint64_t told_ = 0;  // calls before this have their times
};

// Whose GPU times count: all ranks up to 64, else 64 of them, evenly spread, rank 0 among them.
bool Reports(int rank, int64_t ranks);

}  // namespace diapason::plugin
