#include "cli/sweep_progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "base/units.h"

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

std::string DurationText(double seconds) {
  if (!(seconds >= 0)) return "?";
  if (seconds < 10) return Format("%.1fs", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return Format("%llds", whole);
  if (whole < 3600) return Format("%lldm %02llds", whole / 60, whole % 60);
  return Format("%lldh %02lldm", whole / 3600, whole / 60 % 60);
}

std::string ContenderText(const measure::Contest& contest, size_t contender,
                          const measure::Subject& subject) {
  measure::Trial trial = contest.trial;
  trial.config = contest.contenders[contender].config;
  trial.environment = contest.contenders[contender].environment;
  return measure::PointOf(trial, subject).ConfigText();
}

SweepProgress::SweepProgress(const std::vector<measure::Contest>* contests,
                             const measure::Subject* subject, int64_t expected, double seconds,
                             bool quiet)
    : contests_(contests),
      subject_(subject),
      expected_(expected),
      seconds_(seconds),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) != 0),
      best_(contests->size()) {}

SweepProgress::~SweepProgress() {
  if (terminal_ && !quiet_ && taken_ > 0) std::fprintf(stderr, "\r\033[K");
}

std::string SweepProgress::Left() const {
  const double passed = std::chrono::duration<double>(Clock::now() - begin_).count();
  double left = -1;
  if (expected_ > taken_ && taken_ > 0) {
    left = passed / static_cast<double>(taken_) * static_cast<double>(expected_ - taken_);
  }
  if (seconds_ > 0) {
    const double budget = std::max(0.0, seconds_ - passed);
    left = left < 0 ? budget : std::min(left, budget);
  }
  return left < 0 ? "" : ", at most " + DurationText(left) + " left";
}

void SweepProgress::Took(size_t contest, size_t contender, const measure::Reading& reading) {
  ++taken_;
  Best& best = best_[contest];
  if (reading.outcome != dataset::Outcome::kFine) {
    ++failed_;
  } else {
    if (best.seconds == 0 || reading.seconds < best.seconds) {
      best.seconds = reading.seconds;
      best.contender = contender;
    }
    if (contender == 0 && (best.library == 0 || reading.seconds < best.library)) {
      best.library = reading.seconds;
    }
  }
  if (quiet_) return;
  const Clock::time_point now = Clock::now();
  if (now - drawn_ < (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine))) return;
  drawn_ = now;
  const measure::Contest& at = (*contests_)[contest];
  std::string text = expected_ > 0 ? Format("%lld of %lld", static_cast<long long>(taken_),
                                            static_cast<long long>(std::max(expected_, taken_)))
                                   : Format("%lld samples", static_cast<long long>(taken_));
  text += Left() + "; " + measure::CollectiveText(at.trial.operation) + " " +
          FormatBytes(at.trial.bytes) + " " + ContenderText(at, contender, *subject_);
  if (best.seconds > 0) {
    text += Format("; best so far %.1f us", best.seconds * 1e6);
    if (best.contender != 0) text += " " + ContenderText(at, best.contender, *subject_);
    if (best.library > 0) text += Format(", default %.1f us", best.library * 1e6);
  }
  if (failed_ > 0) text += Format("; %lld failed", static_cast<long long>(failed_));
  Draw(text);
}

void SweepProgress::Draw(const std::string& text) {
  if (!terminal_) {
    std::fprintf(stderr, "diapason: sweep: %s\n", text.c_str());
    return;
  }
  std::string bar;
  double share = 0;
  if (expected_ > 0) share = static_cast<double>(taken_) / static_cast<double>(expected_);
  if (seconds_ > 0) {
    share =
        std::max(share, std::chrono::duration<double>(Clock::now() - begin_).count() / seconds_);
  }
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBar);
  bar.append(static_cast<size_t>(full), '#');
  bar.append(static_cast<size_t>(kBar - full), '.');
  const std::string line = "[" + bar + "] " + text;
  std::fprintf(stderr, "\r\033[K%.*s", Width() - 1, line.c_str());
}

}  // namespace diapason::cli
