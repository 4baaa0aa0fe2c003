#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "measure/search.h"

namespace diapason::cli {

// What a sweep is doing, on standard error: a line that is redrawn on a terminal, else a plain line
// every few seconds.
class SweepProgress {
 public:
  // `expected`: samples, where they can be known beforehand; 0 where only the time is limited.
  SweepProgress(const std::vector<measure::Contest>* contests, const measure::Subject* subject,
                int64_t expected, double seconds, bool quiet);
  // Takes the line away.
  ~SweepProgress();
  SweepProgress(const SweepProgress&) = delete;
  SweepProgress& operator=(const SweepProgress&) = delete;

  void Took(size_t contest, size_t contender, const measure::Reading& reading);
  int64_t taken() const { return taken_; }

 private:
  using Clock = std::chrono::steady_clock;
  void Draw(const std::string& text);
  std::string Left() const;

  const std::vector<measure::Contest>* contests_;
  const measure::Subject* subject_;
  int64_t expected_;
  double seconds_;
  bool quiet_;
  bool terminal_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point drawn_{};
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
std::string ContenderText(const measure::Contest& contest, size_t contender,
                          const measure::Subject& subject);
// "3m 12s"
std::string DurationText(double seconds);

}  // namespace diapason::cli
