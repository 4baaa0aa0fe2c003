#include "cli/commands/sweep/sweep_progress.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"

namespace diapason::cli {

std::string CandidateText(const search::CallCase& call_case, size_t candidate,
                          const measure::Subject& subject) {
  measure::Trial trial = call_case.trial;
  trial.config = call_case.candidates[candidate].config;
  trial.environment = call_case.candidates[candidate].environment;
  return measure::PointOf(trial, subject).ConfigText();
}

SweepProgress::SweepProgress(const std::vector<search::CallCase>* call_cases,
                             const measure::Subject* subject, int64_t expected, double seconds,
                             bool quiet)
    : call_cases_(call_cases),
      subject_(subject),
      expected_(expected),
      seconds_(seconds),
      line_("sweep", quiet),
      best_(call_cases->size()) {}

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

bool SweepProgress::Took(size_t call_case, size_t candidate,
                         const measure::Measurement& measurement) {
  ++taken_;
  Best& best = best_[call_case];
  if (measurement.outcome != dataset::SampleOutcome::kFine) {
    ++failed_;
  } else {
    if (best.seconds == 0 || measurement.seconds < best.seconds) {
      best.seconds = measurement.seconds;
      best.candidate = candidate;
    }
    if (candidate == 0 && (best.library == 0 || measurement.seconds < best.library)) {
      best.library = measurement.seconds;
    }
  }
  return line_.Due();
}

void SweepProgress::Show(size_t call_case, size_t candidate) {
  const Best& best = best_[call_case];
  const search::CallCase& at = (*call_cases_)[call_case];
  std::string text = expected_ > 0 ? Format("{} of {}", taken_, std::max(expected_, taken_))
                                   : Format("{} samples", taken_);
  text += Left() + "; " + measure::CollectiveText(at.trial.operation) + " " +
          FormatBytes(at.trial.bytes) + " " + CandidateText(at, candidate, *subject_);
  if (best.seconds > 0) {
    text += Format("; best so far {:.1f} us", best.seconds * 1e6);
    if (best.candidate != 0) text += " " + CandidateText(at, best.candidate, *subject_);
    if (best.library > 0) text += Format(", default {:.1f} us", best.library * 1e6);
  }
  if (failed_ > 0) text += Format("; {} failed", failed_);
  double share = 0;
  if (expected_ > 0) share = static_cast<double>(taken_) / static_cast<double>(expected_);
  if (seconds_ > 0) {
    share =
        std::max(share, std::chrono::duration<double>(Clock::now() - begin_).count() / seconds_);
  }
  line_.Show(share, text);
}

}  // namespace diapason::cli
