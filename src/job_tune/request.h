#pragma once

#include <signal.h>

#include <string>
#include <vector>

namespace diapason::job_tune {

// A figure that the command prints, such as the loss, which tuning must not change.
struct MetricRequest {
  std::string pattern;  // a regular expression (ECMAScript) with one group, the number; "": none
  // The largest change of the last printed value, as a share of it, that is always accepted.
  double tolerance = 1e-3;
};

// What a user wants of `diapason tune -- COMMAND`.
struct Request {
  std::vector<std::string> command;
  double budget = 1200;                   // seconds, for everything
  std::string output = "diapason-tuned";  // folder for all files
  std::string store;                      // "": DIAPASON_STORE, else shm
  MetricRequest metric;
  std::string between;  // a shell command that runs between two launches; "": none
  int end_signal = SIGTERM;
  double grace = 30;       // seconds between it and SIGKILL
  int most_launches = 12;  // of the command
};

}  // namespace diapason::job_tune
