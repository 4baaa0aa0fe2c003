#pragma once

#include <functional>
#include <string>

#include "base/environment.h"
#include "base/status.h"
#include "job_tune/request.h"
#include "job_tune/result.h"

namespace diapason::job_tune {

struct Events {
  // Sentences for the user, as they become known.
  std::function<void(const std::string&)> say;
  // What is being done, a few times a second; `share` of the budget is spent.
  std::function<void(double share, const std::string& what)> progress;
};

// Tunes a job by running it: looks at it and searches inside it, then compares what was found with
// the library's default in fresh launches. Writes journals, logs and the candidate policy into
// Request::output; everything else is for the caller to write (leave.h).
//
// Fails where nothing can be said about the job: it cannot be started, calls no collective, has no
// iterations, or its library or launcher cannot be tuned. The message says what to do. A job that
// was interrupted by the user is no failure (JobTuneResult::interrupted). REQUIRES: a process with
// one thread.
Result<JobTuneResult> TuneJob(const Request& request, const Environment& environment,
                              const Events& events);

}  // namespace diapason::job_tune
