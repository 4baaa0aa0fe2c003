#pragma once

#include "job_tune/result.h"

// For tests: results of every kind. Made up, in the proportions of a decode job.
namespace diapason::job_tune::testing {

// A job of 4 ranks with 32 allreduces of 32 KiB and an allgather, tuned: 1.44 x over three
// launches.
JobTuneResult Faster();
// The same with its allreduces captured in a graph: verified by pairs of launches.
JobTuneResult FasterByPairs();
// The same job with another verdict, and what goes with it.
JobTuneResult WithVerdict(Verdict verdict);

}  // namespace diapason::job_tune::testing
