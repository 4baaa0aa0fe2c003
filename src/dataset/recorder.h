#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "dataset/store.h"

namespace diapason::dataset {

// Writes the samples of a run as they come. What can take long is announced by Begin(), which
// writes everything that is pending: a process that is killed while it measures has lost nothing.
// Between two of those, samples are written in small batches, at the latest with the first one that
// comes half a second after the last writing. What could not be written stays pending.
//
// One thread at a time.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;
  // `store` stays the caller's and must live longer; null: nothing is kept. `now` is for tests.
  Recorder(SampleStore* store, std::string run, std::function<Clock::time_point()> now = Clock::now)
      : store_(store), run_(std::move(run)), now_(std::move(now)), written_(now_()) {}

  // Call it before `next` is measured: what is pending and that `next` is being measured are in the
  // store when it returns.
  Status Begin(const Point& next);
  // The measurement that was begun has ended, with this sample.
  Status Add(Sample sample);
  // Writes what is pending, and that nothing is being measured. Call it before the run is ended.
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
