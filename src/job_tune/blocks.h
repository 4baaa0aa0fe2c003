#pragma once

#include <cstddef>
#include <vector>

#include "job_profile/counted.h"
#include "job_profile/timeline.h"
#include "job_tune/result.h"
#include "learn/learner.h"

// What a job ran while it was tuned from outside: iterations in which every context of interest ran
// one configuration, and how long they took. Pure.
namespace diapason::job_tune {

// What each context of interest runs, in their order; default: the library's own.
using JobSetting = std::vector<Config>;

// Iterations one after the other that ran one setting as a whole.
struct Block {
  JobSetting setting;           // of contexts that the rank does not call: as they were asked for
  std::vector<bool> seen;       // by context: whether the rank calls it
  std::vector<double> seconds;  // of the iterations, those at the borders left out
  size_t all = 0;               // iterations, with those at the borders
};

// The blocks of one rank, in order. `counted`: calls whose number per iteration is known;
// per_iteration 0: iterations are found in the order of calls.
std::vector<Block> BlocksOf(const job_profile::Timeline& timeline,
                            const std::vector<job_profile::Role>& roles,
                            const std::vector<JobContext>& contexts,
                            const job_profile::CountedCalls& counted = {});

// The time of an iteration in each of the settings that were asked for one after the other:
// SegmentResult::samples is the number of iterations, 0 if it was not measured. A setting that
// never took effect is passed over.
std::vector<learn::SegmentResult> ResultsOf(const std::vector<JobSetting>& asked,
                                            const std::vector<Block>& blocks);

}  // namespace diapason::job_tune
