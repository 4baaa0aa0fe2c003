#pragma once

#include <string>

#include "job_tune/launches.h"
#include "job_tune/tuning.h"

namespace diapason::job_tune {

// What the steps of tuning a job share: the budget, the launches, and the result that they fill.
// Lives as long as TuneJob. Not thread-safe.
class TuningRun {
 public:
  TuningRun(const Request& request, const Environment& environment, const Events& events);

  const Request& request() const { return request_; }
  Launches& launches() { return launches_; }
  const Launches& launches() const { return launches_; }
  const std::string& store() const { return store_; }  // where the ranks agree
  // On the steady clock, in seconds.
  double begun() const { return begun_; }
  double deadline() const { return deadline_; }
  double Left() const;
  // "a --budget of 6m or more": the time since the beginning and so many seconds, in whole minutes.
  std::string BudgetText(double more) const;

  void Say(const std::string& text) const;
  void Progress(const std::string& what) const;
  // Runs a launch and notes it in the result. If the user wants to end, result.interrupted is set,
  // and no further launch may follow.
  Result<Launch> Start(const LaunchPlan& plan);

  JobTuneResult result;

 private:
  const Request& request_;
  const Events& events_;
  Launches launches_;
  const double begun_;
  const double deadline_;
  std::string store_;
};

inline constexpr double kToEnd = 3;  // seconds that a command takes to end when it is asked
// Of the budget: what is kept back for verifying, at most.
inline constexpr double kMostForVerifying = 0.6;

}  // namespace diapason::job_tune
