#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "dataset/store.h"
#include "measure/measurer.h"
#include "search/search.h"

namespace diapason::search {

struct ReplayOptions {
  // Which samples may be served; empty: all. Held-out samples are not served, so that they can
  // score the result.
  std::function<bool(const dataset::Sample&)> allowed;
  // 0: the samples of a point come in the order of their rounds. Else in an order of its own.
  uint64_t shuffle = 0;
  // Starts again with a point's first sample after its last. Without it, that is an error.
  bool wrap = false;
};

// Serves the measurements of a dataset as if they were taken now, each at most once. Failures are
// served like times. A sample that is not there, or not there any more, is kNotFound.
//
// The clock moves by what a sample took: its time per call, times its calls.
class ReplayMeasurer : public measure::Measurer {
 public:
  // Of what was measured with the subject's library on its nodes and ranks. A sample that cannot be
  // understood is an error; so is a time that is not one.
  static Result<std::unique_ptr<ReplayMeasurer>> Create(const dataset::StoreContents& contents,
                                                        const measure::Subject& subject,
                                                        const ReplayOptions& options = {});

  Result<measure::Measurement> Measure(const measure::Trial& trial) override;
  const measure::Subject& subject() const override { return subject_; }
  double Now() const override { return now_; }

  int64_t served() const { return served_; }
  // How many could be served at first.
  int64_t held() const { return held_; }

 private:
  struct Shelf {
    std::vector<dataset::Sample> samples;
    size_t next = 0;
  };
  explicit ReplayMeasurer(measure::Subject subject, bool wrap)
      : subject_(std::move(subject)), wrap_(wrap) {}

  measure::Subject subject_;
  bool wrap_;
  std::map<dataset::Point, Shelf> shelves_;
  double now_ = 0;
  int64_t served_ = 0;
  int64_t held_ = 0;
};

// Everyone who was measured in a dataset: each library with each number of nodes and ranks, in that
// order. Samples of libraries we do not know are left out.
std::vector<measure::Subject> SubjectsIn(const dataset::StoreContents& contents);

// What a dataset holds of one subject, as cases: by operation, type and size, the default first
// and the rest in a fixed order.
struct CallCasesFound {
  std::vector<CallCase> call_cases;
  // Why something that was measured is no case: "allreduce, 4KiB: the library default was never
  // measured".
  std::vector<std::string> left_out;
};
Result<CallCasesFound> CallCasesIn(const dataset::StoreContents& contents,
                                   const measure::Subject& subject);

}  // namespace diapason::search
