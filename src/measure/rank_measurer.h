#pragma once

#include "base/status.h"
#include "measure/iteration.h"
#include "measure/measurer.h"

namespace diapason::measure {

// A measurer with ranks of its own, which can also time pairs of ranks and whole iterations: the
// group this process is a rank of, or a job that is started for measuring.
class RankMeasurer : public Measurer {
 public:
  // Two ranks send each other `bytes` at the same time, `iterations` times; the others wait.
  virtual Result<Measurement> MeasurePair(int first, int second, uint64_t bytes,
                                          int iterations) = 0;
  virtual Result<IterationTimes> Iterate(const IterationSpec& spec) = 0;
  // A measurement was a hang or a crash, and the ranks will not be started again.
  virtual bool broken() const { return false; }
};

}  // namespace diapason::measure
