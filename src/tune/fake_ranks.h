#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/measurer.h"

namespace diapason::tune {

// Ranks for tests: times from a function of the trial and of how many readings came before, over
// all launches; remembers what it was asked.
class FakeRanks : public measure::Measurer {
 public:
  struct History {
    std::vector<measure::Trial> asked;
    std::vector<size_t> launched_at;  // how much had been asked when ranks were started
    // A played clock: what all launches and blocks of calls have taken.
    double seconds = 0;
    double launch_seconds = 0;
    double block_seconds = 1e-4;  // beside its calls
  };
  using Times = std::function<measure::Measurement(const measure::Trial&, size_t before)>;
  FakeRanks(Times times, measure::Subject subject, History* history)
      : times_(std::move(times)), subject_(std::move(subject)), history_(history) {
    history_->launched_at.push_back(history_->asked.size());
    history_->seconds += history_->launch_seconds;
  }

  Result<measure::Measurement> Measure(const measure::Trial& trial) override {
    measure::Measurement measurement = times_(trial, history_->asked.size());
    history_->asked.push_back(trial);
    measurement.iterations = trial.iterations;
    const double spent =
        measurement.seconds * (trial.iterations + trial.warmups) + history_->block_seconds;
    now_ += spent;
    history_->seconds += spent;
    if (trial.check && measurement.wrong < 0) measurement.wrong = 0;
    return measurement;
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

inline measure::Measurement Took(double seconds) {
  measure::Measurement measurement;
  measurement.seconds = measurement.fastest = seconds;
  return measurement;
}

}  // namespace diapason::tune
