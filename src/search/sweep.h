#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "dataset/store.h"
#include "search/search.h"

namespace diapason::search {

// What a sweep looks at: every combination.
struct SweepPlan {
  std::vector<Operation> operations;
  std::vector<uint64_t> sizes;
  DataType type = DataType::kF32;
  ReduceOp reduce = ReduceOp::kSum;
  bool in_place = false;
  std::vector<std::string> algorithms;  // names; empty: all the library has
  std::vector<std::string> protocols;   // likewise
  std::vector<int> channels = {0};      // 0: the library's own number
  std::vector<int64_t> segments = {0};  // Open MPI
  // Each is a launch: "" (as it is) first.
  std::vector<std::string> environments = {""};

  // The same plan gives the same text: how --resume finds its run.
  std::string Text() const;
};

// The cases of a plan on what is measured. The library's own choice is the first candidate of
// each; RCCL's is also measured without our plugin, since loading any tuner turns RCCL's own table
// off. A size without an element for every rank is left out.
Result<std::vector<CallCase>> MakeCallCases(const SweepPlan& plan, const measure::Subject& subject);

// Sees to it that every block of calls is long enough to be timed and short enough to be repeated:
// the first time a candidate runs it is checked, warmed up and timed once; from then on blocks have
// the calls that fit.
class CalibratedMeasurer : public measure::Measurer {
 public:
  struct Options {
    double block_seconds = 0.003;
    int most_iterations = 50;
    int warmups = 3;  // the first time; afterwards one
    bool check = true;
  };
  CalibratedMeasurer(measure::Measurer* measurer, Options options)
      : measurer_(measurer), options_(options) {}

  Result<measure::Measurement> Measure(const measure::Trial& trial) override;
  const measure::Subject& subject() const override { return measurer_->subject(); }
  double Now() const override { return measurer_->Now(); }

 private:
  measure::Measurer* measurer_;
  Options options_;
  std::map<std::string, int> iterations_;
};

// What a store already knows of the cases. What has failed in a run and was fine later in the
// same run, where it was tried again, has not failed.
SamplesByCandidate KnownFrom(const dataset::StoreContents& contents,
                             const std::vector<CallCase>& call_cases,
                             const measure::Subject& subject);

// A rough estimate of the seconds of a call that was not measured: for plans only.
double GuessSeconds(const measure::Trial& trial, const measure::Subject& subject);

}  // namespace diapason::search
