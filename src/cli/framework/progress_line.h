#pragma once

#include <chrono>
#include <string>

namespace diapason::cli {

// What a long command is doing, on standard error: a bar that is redrawn on a terminal, else a
// plain line every few seconds. Quiet: nothing.
class ProgressLine {
 public:
  // `command` stands before plain lines: "diapason: sweep: ...".
  ProgressLine(std::string command, bool quiet);
  // Takes the bar away.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether it is time to say something again: making the text costs more than drawing it.
  bool Due();
  // `share` of the whole that is done, 0 to 1.
  void Show(double share, const std::string& text);
  // Takes the bar away, for whoever has something to print.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string command_;
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point next_{};
};

// "3m 12s"
std::string DurationText(double seconds);

}  // namespace diapason::cli
