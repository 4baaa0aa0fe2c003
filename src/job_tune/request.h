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

inline constexpr int kMostLaunches = 12;
// What is captured in a graph is tried by launches, so that there have to be more.
inline constexpr int kMostWithGraphs = 40;

// What a user wants of `diapason tune -- COMMAND`.
struct Request {
  std::vector<std::string> command;
  double budget = 1200;                   // seconds, for everything
  std::string output = "diapason-tuned";  // folder for all files
  std::string store;                      // "": DIAPASON_STORE, else shm
  MetricRequest metric;
  std::string between;  // a shell command that runs between two launches; "": none
  int end_signal = SIGTERM;
  double grace = 30;  // seconds between it and SIGKILL
  // Of the command; 0: kMostLaunches, or kMostWithGraphs where calls are captured in graphs.
  int most_launches = 0;
  bool mpi = false;  // an MPI program without NCCL or RCCL, whatever its file shows
};

}  // namespace diapason::job_tune
