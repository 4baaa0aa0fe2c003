#include "cli/framework/progress_line.h"

#include <unistd.h>

#include <algorithm>

#include "cli/framework/output.h"

namespace diapason::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kPlainLine{5};
constexpr int kBar = 24;

}  // namespace

ProgressLine::ProgressLine(std::string command, bool quiet)
    : command_(std::move(command)), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() { Clear(); }

void ProgressLine::Clear() {
  if (!quiet_ && terminal_) EraseLine();
}

bool ProgressLine::Due() {
  if (quiet_) return false;
  const Clock::time_point now = Clock::now();
  if (now < next_) return false;
  next_ = now + (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine));
  return true;
}

void ProgressLine::Show(double share, const std::string& text) {
  if (quiet_) return;
  if (!terminal_) {
    WriteError("diapason: " + command_ + ": " + text + "\n");
    return;
  }
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBar);
  const std::string line = "[" + std::string(static_cast<size_t>(full), '#') +
                           std::string(static_cast<size_t>(kBar - full), '.') + "] " + text;
  DrawLine(line);
}

}  // namespace diapason::cli
