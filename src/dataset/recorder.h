#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "dataset/store.h"

namespace diapason::dataset {

// Writes the samples of a run as they come. Begin() announces a measurement and writes all pending
// samples, so that a process killed while measuring loses nothing. Otherwise samples are written in
// small batches, at the latest with the first sample half a second after the last write. Samples
// that could not be written stay pending.
//
// Not thread-safe.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;
  // The caller owns `store`, which must live longer; null: nothing is kept. `now` is for tests.
  Recorder(SampleStore* store, std::string run, std::function<Clock::time_point()> now = Clock::now)
      : store_(store), run_(std::move(run)), now_(std::move(now)), written_(now_()) {}

  // Call it before `next` is measured: it writes the pending samples and the mark that `next` is
  // being measured.
  Status Begin(const Point& next);
  // The measurement has ended with this sample.
  Status Add(Sample sample);
  // Writes the pending samples, and clears the mark. Call it before the run ends.
  Status Flush();

 private:
  Status Write(const Point* next);

  SampleStore* store_;
  std::string run_;
  std::function<Clock::time_point()> now_;
  std::vector<Sample> pending_;
  bool begun_ = false;
  Clock::time_point written_;
};

}  // namespace diapason::dataset
