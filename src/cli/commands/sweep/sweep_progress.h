#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/framework/progress_line.h"
#include "search/search.h"

namespace diapason::cli {

// Progress of a sweep on standard error.
class SweepProgress {
 public:
  // `expected`: number of samples if it is known beforehand; 0 if only the time is limited.
  SweepProgress(const std::vector<search::CallCase>* call_cases, const measure::Subject* subject,
                int64_t expected, double seconds, bool quiet);

  // Counts a sample. Returns true if the next update is due.
  bool Took(size_t call_case, size_t candidate, const measure::Measurement& measurement);
  void Show(size_t call_case, size_t candidate);
  int64_t taken() const { return taken_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::string Left() const;

  const std::vector<search::CallCase>* call_cases_;
  const measure::Subject* subject_;
  int64_t expected_;
  double seconds_;
  ProgressLine line_;
  Clock::time_point begin_ = Clock::now();
  int64_t taken_ = 0;
  int64_t failed_ = 0;
  // For each case: the fastest block so far with its candidate, and the fastest of the default.
  struct Best {
    double seconds = 0;
    size_t candidate = 0;
    double library = 0;
  };
  std::vector<Best> best_;
};

// "allreduce 64KiB ring/simple, 4 channels"
std::string CandidateText(const search::CallCase& call_case, size_t candidate,
                          const measure::Subject& subject);
}  // namespace diapason::cli
