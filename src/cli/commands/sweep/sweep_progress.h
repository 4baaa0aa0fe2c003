#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/framework/progress_line.h"
#include "search/search.h"

namespace diapason::cli {

// What a sweep is doing, on standard error.
class SweepProgress {
 public:
  // `expected`: samples, where they can be known beforehand; 0 where only the time is limited.
  SweepProgress(const std::vector<search::Contest>* contests, const measure::Subject* subject,
                int64_t expected, double seconds, bool quiet);

  // Counts it. True: it is time to show something again.
  bool Took(size_t contest, size_t contender, const measure::Reading& reading);
  void Show(size_t contest, size_t contender);
  int64_t taken() const { return taken_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::string Left() const;

  const std::vector<search::Contest>* contests_;
  const measure::Subject* subject_;
  int64_t expected_;
  double seconds_;
  ProgressLine line_;
  Clock::time_point begin_ = Clock::now();
  int64_t taken_ = 0;
  int64_t failed_ = 0;
  // By contest: the fastest block so far and whose it was, and the default's.
  struct Best {
    double seconds = 0;
    size_t contender = 0;
    double library = 0;
  };
  std::vector<Best> best_;
};

// "allreduce 64KiB ring/simple, 4 channels"
std::string ContenderText(const search::Contest& contest, size_t contender,
                          const measure::Subject& subject);
}  // namespace diapason::cli
