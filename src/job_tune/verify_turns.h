#pragma once

#include <map>
#include <string>
#include <vector>

#include "job_profile/counted.h"
#include "job_tune/tuning_run.h"

namespace diapason::job_tune {

// Verifies a policy in fresh launches, in each of which the default and the policy take turns.
// Fills JobTuneResult::verified and gain. Not thread-safe.
class TurnVerifier {
 public:
  // `start_up`: seconds from the start of a launch to its first call.
  TurnVerifier(TuningRun* run, double start_up) : run_(*run), start_up_(start_up) {}

  // Seconds that the search has to leave for the verification, from the look on: what is found
  // later cannot be confirmed. As long as nothing is found, the least number of launches.
  static double SecondsToKeep(double budget, bool found, double iteration, double start_up);

  // Runs launches until the gain is known well enough, or no launch or time is left. Fails where a
  // launch fails, or ranks chose differently. `policy`: a file.
  Status Verify(const std::string& policy);
  // At least two launches count, and the interval of the gain lies above 1.
  bool Confirmed() const;
  // Why there is no verdict; "" if there is one.
  std::string WhyUndecided() const;
  // Where the time of an iteration goes in both settings (JobTuneResult::by_default, tuned).
  void Picture();

 private:
  bool WantsAnother() const;
  bool Enough(const job::PreparedJob& job, int number, double* first_call) const;
  Status Take(const Launch& launch);
  double TurnSeconds() const;
  job_profile::CountedCalls CountedCalls() const;

  TuningRun& run_;
  const double start_up_;
  std::map<int, std::vector<std::string>> journals_;  // by launch
};

}  // namespace diapason::job_tune
