#include "cli/commands/sweep/sweep_progress.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"

namespace diapason::cli {

std::string ContenderText(const search::Contest& contest, size_t contender,
                          const measure::Subject& subject) {
  measure::Trial trial = contest.trial;
  trial.config = contest.contenders[contender].config;
  trial.environment = contest.contenders[contender].environment;
  return measure::PointOf(trial, subject).ConfigText();
}

SweepProgress::SweepProgress(const std::vector<search::Contest>* contests,
                             const measure::Subject* subject, int64_t expected, double seconds,
                             bool quiet)
    : contests_(contests),
      subject_(subject),
      expected_(expected),
      seconds_(seconds),
      line_("sweep", quiet),
      best_(contests->size()) {}

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

bool SweepProgress::Took(size_t contest, size_t contender, const measure::Reading& reading) {
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
  return line_.Due();
}

void SweepProgress::Show(size_t contest, size_t contender) {
  const Best& best = best_[contest];
  const search::Contest& at = (*contests_)[contest];
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
  double share = 0;
  if (expected_ > 0) share = static_cast<double>(taken_) / static_cast<double>(expected_);
  if (seconds_ > 0) {
    share =
        std::max(share, std::chrono::duration<double>(Clock::now() - begin_).count() / seconds_);
  }
  line_.Show(share, text);
}

}  // namespace diapason::cli
