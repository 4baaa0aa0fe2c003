#pragma once

#include <map>
#include <string>
#include <vector>

#include "job_tune/launch_search.h"
#include "job_tune/launch_time.h"
#include "job_tune/tuning_run.h"

namespace diapason::job_tune {

// Tries and verifies by launches what cannot change inside one: calls that are captured in graphs.
// A launch is ended once it has had enough iterations; where launches are timed as a whole, it runs
// to its end. Not thread-safe.
class LaunchTuner {
 public:
  // `start_up`: seconds from the start of a launch to its first call.
  LaunchTuner(TuningRun* run, const LaunchTiming& timing, double start_up);

  // Searches (LaunchSearch), beside what JobTuneResult::contexts have as chosen so far, until all
  // is done or what is left is needed for verifying. Fills in `tried` and `chosen`, or `untried`,
  // of the contexts from number `first` on. Fails if the library's own choice cannot be timed.
  Status Search(std::vector<SearchContext> contexts, size_t first);
  // Everything was compared to the end.
  bool complete() const { return complete_; }
  // What would let the search get on: "a --budget of 6m or more", "more --launches".
  std::string WhatWouldDo() const;

  // Compares fresh launches with the default and with the policy, a file, in pairs of alternating
  // order. Fills JobTuneResult::pairs and gain. Fails if ranks chose differently.
  Status Verify(const std::string& policy);
  // At least three pairs count, and the interval of the gain lies above 1.
  bool Confirmed() const;
  // Why there is no verdict; "" if there is one.
  std::string WhyUndecided() const;
  // Where the time of an iteration goes in both settings (JobTuneResult::by_default, tuned).
  void Picture();

 private:
  struct Timed {
    int launch = 0;
    LaunchTime time;
  };
  // `policy`: a file; "": the library's own choices.
  Result<Timed> Time(const std::string& purpose, const std::string& policy);
  LaunchTime TimeOf(const Launch& launch);
  bool Enough(const job::PreparedJob& job, const std::string& purpose);
  Result<std::string> WriteTrial(const JobSetting& setting, size_t first) const;
  std::string PurposeOf(const LaunchSearch& search, const JobSetting& setting) const;
  void TakeSearch(const LaunchSearch& search, size_t first);
  double LaunchSeconds() const;
  int LaunchesKept() const;
  bool RoomForSearch() const;
  bool WantsAnotherPair() const;
  Status CheckRanks(const Launch& launch) const;

  TuningRun& run_;
  const LaunchTiming timing_;
  const double start_up_;
  const double least_;  // seconds from the first call on
  size_t wanted_ = 0;   // iterations of a launch
  bool complete_ = false;
  double made_seconds_ = 0;  // of the launches so far
  int made_ = 0;
  std::map<int, std::vector<std::string>> journals_;  // by launch

  // Of the launch that runs.
  std::unique_ptr<IterationTimer> timer_;
  double first_call_ = 0;  // on the steady clock
  double next_look_ = 0;
};

}  // namespace diapason::job_tune
