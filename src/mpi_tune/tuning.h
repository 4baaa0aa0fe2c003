#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/status.h"
#include "job_tune/metric.h"
#include "job_tune/request.h"
#include "job_tune/result.h"
#include "mpi_profile/mpi_profile.h"
#include "mpi_tune/contexts.h"
#include "mpi_tune/pairs.h"
#include "mpi_tune/search_alone.h"
#include "mpi_tune/trials.h"

namespace diapason::mpi_tune {

// Of pairs of launches; kNothingToGain also where the calls take too little time.
using job_tune::Verdict;
using job_tune::VerdictName;

struct TunedContext {
  Context context;
  AloneFinding alone;
  std::vector<InProgram> tried;  // the library's own choice first
  Config chosen;                 // default: left to the library
};

struct LaunchLine {
  int number = 0;
  std::string purpose;
  double seconds = 0;
  LaunchTimes times;
  std::string log;
  std::optional<double> metric;  // the value printed last
};

struct MpiTuneResult {
  std::string command;
  Verdict verdict = Verdict::kUndecided;
  std::string why;  // one sentence, unless it is faster
  mpi_profile::MpiProfile profile;
  std::vector<TunedContext> contexts;
  Comparison compared;
  job_tune::MetricJudgement metric;  // of the launches that verify
  std::vector<LaunchLine> launches;
  policy::Policy policy;  // what was confirmed; without rows if nothing was
  std::vector<std::string> remarks;
  std::vector<std::string> notes;
  bool interrupted = false;
  // What the caller has written: leave.h.
  std::string folder;
  std::string rules;  // "": none

  std::string Headline() const;
};

struct Events {
  std::function<void(const std::string&)> say;
  std::function<void(double share, const std::string& what)> progress;
  std::function<bool()> interrupted;  // the user wants to end
};

// Tunes the collectives of an MPI program by running it: looks at it, searches its calls alone on
// ranks of our own, tries the best few in the program itself by launches, and compares what was
// chosen with the default in pairs of launches.
//
// Fails where nothing can be said about the program: it cannot be started, fails, calls no
// collective, or its library is not Open MPI. The message says what to do. REQUIRES: a process with
// one thread, whose main() calls launch::RunHelper.
Result<MpiTuneResult> TuneMpi(const job_tune::Request& request, const Environment& environment,
                              const Events& events);

}  // namespace diapason::mpi_tune
