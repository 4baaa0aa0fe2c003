#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agree/epochs.h"
#include "agree/store.h"
#include "learn/rewards.h"

namespace diapason::plugin {

// One rank's rewards in a context: the durations of its calls, by epoch. Where all ranks measure,
// ranks other than 0 write the results of each finished epoch into the store for rank 0.
class Reporter {
 public:
  Reporter(agree::CellStore* store, std::string prefix, int rank);

  void Entered(const agree::EpochLog::Epoch& epoch, double now);
  // The newest epoch that was entered; number 0 and no calls at first.
  const agree::EpochLog::Epoch& newest() const { return newest_; }
  // See learn::SampleBook.
  void SkipChanges(bool skip) { book_.SkipChanges(skip); }
  // Records the duration of calls [first, end).
  void Credit(uint64_t first, uint64_t end, double seconds);

  struct Finished {
    uint32_t epoch = 0;
    bool timed = false;
    std::vector<learn::SegmentResult> results;
  };
  // Epochs that are finished: left, and the time of their last call has arrived or is given up.
  std::vector<Finished> TakeFinished(double now, double patience);
  // For ranks other than 0. Errors are ignored: rank 0 then has one result less.
  void Post(const Finished& finished);

  // The cell into which `rank` writes its results.
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
  agree::EpochLog::Epoch newest_;
  learn::SampleBook book_;
  std::map<uint32_t, Open> open_;
  uint64_t told_ = 0;  // the times of calls before this one have arrived
};

// Whether GPU times of `rank` count: all ranks up to 64, otherwise 64 of them, evenly spread,
// including rank 0.
bool Reports(int rank, int64_t ranks);

}  // namespace diapason::plugin
