#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "measure/iteration.h"
#include "measure/measurer.h"
#include "search/search.h"
#include "search/sweep.h"
#include "tune/recorded_step.h"

namespace diapason::tune {

// What a job calls: from a journal, a log, or a person's list of sizes.
struct MixEntry {
  Operation operation = Operation::kAllReduce;
  uint64_t bytes = 0;  // as nccl-tests counts
  uint64_t calls = 1;
};

// Calls of one kind and size together, the costliest first (calls times what one may take). Beyond
// `most` of them, those that cost least are left out.
struct Mix {
  std::vector<MixEntry> entries;
  uint64_t calls = 0;  // of all that were given
  double covered = 1;  // the share of their guessed time that the entries have
};
Mix MakeMix(std::vector<MixEntry> entries, size_t most, const measure::Subject& subject);

// The cases of a mix: as measure::MakeCallCases makes them of a plan's sizes.
Result<std::vector<search::CallCase>> MixCallCases(const Mix& mix, const search::SweepPlan& plan,
                                                   const measure::Subject& subject);

// A step that makes these calls in this order, evenly over the step, overlapping what is computed
// until the next. Of more than 64, every second or third, and so on. Calls that no bucket can be
// (broadcast, reduce) are left out.
Result<measure::IterationSpec> StepIteration(const RecordedStep& step);

// The same where the order of calls is not known: of every entry as many as in one iteration, which
// is as often as the rarest divides the others. What is called less than 1/64 as often as the most
// frequent kind is taken for start-up, and is not part of a step.
Result<measure::IterationSpec> MixIteration(const Mix& mix);

// The cases of an iteration: for every kind and size of its buckets that has a choice, the whole
// step with that choice for them.
Result<std::vector<search::CallCase>> IterationCallCases(const measure::IterationSpec& spec,
                                                         const search::SweepPlan& plan,
                                                         const measure::Subject& subject);

}  // namespace diapason::tune
