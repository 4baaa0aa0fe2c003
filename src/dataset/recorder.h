#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "dataset/store.h"

namespace diapason::dataset {

// Writes the samples of a run as they come, in small batches: whoever is killed while measuring
// loses half a second.
class Recorder {
 public:
  // `store` stays the caller's and must live longer; null: nothing is kept.
  Recorder(Store* store, std::string run) : store_(store), run_(std::move(run)) {}
  Status Add(Sample sample);
  // What is left. Call it before the run is ended.
  Status Flush();

 private:
  Store* store_;
  std::string run_;
  std::vector<Sample> pending_;
  std::chrono::steady_clock::time_point written_ = std::chrono::steady_clock::now();
};

}  // namespace diapason::dataset
