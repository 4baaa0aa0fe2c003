#pragma once

#include <chrono>
#include <string>

namespace diapason::cli {

// Progress of a long command on standard error: a bar that is redrawn on a terminal, otherwise a
// plain line every few seconds. Prints nothing if quiet. Everything that is printed through
// output.h erases the bar first.
class ProgressLine {
 public:
  // `command` is the prefix of plain lines: "diapason: sweep: ...".
  ProgressLine(std::string command, bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether the next update is due: making the text costs more than drawing it.
  bool Due();
  // `share`: completed fraction, 0 to 1.
  void Show(double share, const std::string& text);
  // Erases the bar.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string command_;
  bool quiet_;
  bool terminal_;
  Clock::time_point next_{};
};

}  // namespace diapason::cli
