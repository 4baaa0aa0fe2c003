#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/measurer.h"

namespace diapason::tune {

// Ranks for tests: times from a function of the trial and of how many readings came before, over
// all launches; remembers what it was asked.
class FakeRanks : public measure::Instrument {
 public:
  struct History {
    std::vector<measure::Trial> asked;
    std::vector<size_t> launched_at;  // how much had been asked when ranks were started
  };
  using Times = std::function<measure::Reading(const measure::Trial&, size_t before)>;
  FakeRanks(Times times, measure::Subject subject, History* history)
      : times_(std::move(times)), subject_(std::move(subject)), history_(history) {
    history_->launched_at.push_back(history_->asked.size());
  }

  Result<measure::Reading> Measure(const measure::Trial& trial) override {
    measure::Reading reading = times_(trial, history_->asked.size());
    history_->asked.push_back(trial);
    reading.iterations = trial.iterations;
    now_ += reading.seconds * (trial.iterations + trial.warmups) + 1e-4;
    if (trial.check && reading.wrong < 0) reading.wrong = 0;
    return reading;
  }
  const measure::Subject& subject() const override { return subject_; }
  double Now() const override { return now_; }
  int launches() const override { return 1; }

 private:
  Times times_;
  measure::Subject subject_;
  History* history_;
  double now_ = 0;
};

inline measure::Reading Took(double seconds) {
  measure::Reading reading;
  reading.seconds = reading.fastest = seconds;
  return reading;
}

}  // namespace diapason::tune
