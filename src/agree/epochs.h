#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "agree/known_cells.h"
#include "agree/store.h"
#include "domain/schedule.h"

namespace diapason::agree {

// One context's agreed sequence of configurations, as one rank walks along it. The calls of a
// context are numbered from 0 and cut into epochs. Epochs 0 and 1 are the incumbent and have no
// cell. Every later epoch is what its cell says; a rank that enters an epoch whose cell is empty
// proposes to hold (the incumbent for `hold_calls` calls) and uses what stands. No rank waits for
// another; how long it waits for the store is the store's matter (PatientStore). Holds that follow
// each other grow to 128 times that: rank 0 has time to catch up.
//
// Not for several threads at once.
class EpochLog {
 public:
  struct Options {
    std::string prefix;  // of the communicator and the context: "c1f.0.allreduce.20."
    Config incumbent;
    uint64_t opening_calls = 16;  // of epochs 0 and 1 each
    uint64_t hold_calls = 32;
    // What was read ahead; entering an epoch that is known needs no store. May be nullptr; else it
    // outlives the log.
    KnownCells* known = nullptr;
  };
  EpochLog(CellStore* store, Options options);

  // The consecutive calls with one configuration that an index belongs to.
  struct Span {
    uint32_t epoch = 0;
    uint32_t segment = 0;
    uint64_t first = 0;
    uint64_t end = 0;  // the first index after it
    Config config;
    bool counts = true;
    bool held = false;  // nothing was agreed in time
  };
  // May go back to an index asked before, as long as it was not forgotten. An error: what the other
  // ranks run for this index cannot be known.
  Result<Span> At(uint64_t index);
  // The incumbent of the epoch an index belongs to; the index was asked for before.
  Config IncumbentAt(uint64_t index) const {
    for (auto epoch = epochs_.rbegin(); epoch != epochs_.rend(); ++epoch) {
      if (index >= epoch->start) return epoch->schedule.incumbent;
    }
    return epochs_.front().schedule.incumbent;
  }
  // Nobody will ask below this index again.
  void Forget(uint64_t index);

  struct Epoch {
    uint32_t number = 0;
    uint64_t start = 0;
    bool held = false;
    Schedule schedule;
    uint32_t holds = 0;  // in a row, this one included
    uint64_t end() const { return start + schedule.Calls(); }
  };
  // The newest epoch this rank has entered.
  const Epoch& newest() const { return epochs_.back(); }

  // Where an epoch's cell is.
  static std::string CellKey(const std::string& prefix, uint32_t epoch);

  // Rank 0's proposal for an epoch that no rank need have entered yet. What stands: a hold, or a
  // schedule.
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
