#include "cli/framework/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace diapason::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kPlainLine{5};
constexpr int kBar = 24;

int Width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 120;
}

}  // namespace

ProgressLine::ProgressLine(std::string command, bool quiet)
    : command_(std::move(command)), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() { Clear(); }

void ProgressLine::Clear() {
  if (drawn_) std::fprintf(stderr, "\r\033[K");
  drawn_ = false;
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
    std::fprintf(stderr, "diapason: %s: %s\n", command_.c_str(), text.c_str());
    return;
  }
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBar);
  const std::string line = "[" + std::string(static_cast<size_t>(full), '#') +
                           std::string(static_cast<size_t>(kBar - full), '.') + "] " + text;
  std::fprintf(stderr, "\r\033[K%.*s", Width() - 1, line.c_str());
  drawn_ = true;
}

}  // namespace diapason::cli
