#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "agree/known_cells.h"
#include "agree/store.h"
#include "domain/schedule.h"

namespace diapason::agree {

// The agreed sequence of configurations of one context, as one rank walks through it. The calls of
// a context are numbered from 0 and divided into epochs. Epochs 0 and 1 run the incumbent and have
// no cell. The cell of every later epoch defines it; a rank that enters an epoch whose cell is
// empty proposes to hold (the incumbent for `hold_calls` calls) and uses the value that stands. No
// rank waits for another; the store bounds the wait for itself (PatientStore). Consecutive holds
// grow up to 128 times `hold_calls`, so that rank 0 can catch up.
//
// Not thread-safe.
class EpochLog {
 public:
  struct Options {
    std::string prefix;  // of the communicator and the context: "c1f.0.allreduce.20."
    Config incumbent;
    uint64_t opening_calls = 16;  // of epochs 0 and 1 each
    uint64_t hold_calls = 32;
    // Cells read ahead; entering a known epoch does not access the store. May be nullptr; otherwise
    // it must outlive the log.
    KnownCells* known = nullptr;
  };
  EpochLog(CellStore* store, Options options);

  // The consecutive calls with one configuration that contain an index.
  struct Span {
    uint32_t epoch = 0;
    uint32_t segment = 0;
    uint64_t first = 0;
    uint64_t end = 0;  // the first index after it
    Config config;
    bool counts = true;
    bool by_policy = false;  // see Segment
    bool held = false;       // no proposal was there in time
  };
  // `index` may be lower than before, unless it was forgotten. An error: the other ranks'
  // configuration for this index cannot be known.
  Result<Span> At(uint64_t index);
  // The incumbent of the epoch that contains an index, which At was called for before.
  Config IncumbentAt(uint64_t index) const {
    for (auto epoch = epochs_.rbegin(); epoch != epochs_.rend(); ++epoch) {
      if (index >= epoch->start) return epoch->schedule.incumbent;
    }
    return epochs_.front().schedule.incumbent;
  }
  // No index below this one will be used again.
  void Forget(uint64_t index);

  struct Epoch {
    uint32_t number = 0;
    uint64_t start = 0;
    bool held = false;
    Schedule schedule;
    uint32_t holds = 0;  // consecutive holds, including this one
    uint64_t end() const { return start + schedule.Calls(); }
  };
  // The newest epoch this rank has entered.
  const Epoch& newest() const { return epochs_.back(); }

  // The key of an epoch's cell.
  static std::string CellKey(const std::string& prefix, uint32_t epoch);

  // Rank 0's proposal for an epoch that no rank needs to have entered yet. The result is what
  // stands: a hold, or a schedule.
  struct Standing {
    bool held = false;  // then the schedule is empty
    Schedule schedule;
    std::string text;  // as the cell has it
  };
  static Result<Standing> Propose(CellStore* store, const std::string& prefix, uint32_t epoch,
                                  const Schedule& schedule);

 private:
  Result<Epoch> EnterAfter(const Epoch& last);
  Result<std::string> Cell(uint32_t epoch);

  CellStore* store_;
  Options options_;
  std::deque<Epoch> epochs_;  // consecutive; never empty
};

}  // namespace diapason::agree
