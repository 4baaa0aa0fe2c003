#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tune/session.h"

namespace diapason::tune {

const char* CallOutcomeName(CallOutcome ending) {
  switch (ending) {
    case CallOutcome::kTuned:
      return "tuned";
    case CallOutcome::kNothingBetter:
      return "nothing better";
    case CallOutcome::kNotConfirmed:
      return "not confirmed";
    case CallOutcome::kFailed:
      return "failed";
    case CallOutcome::kNoDefault:
      break;
  }
  return "no default";
}

double TunedCall::Gain() const { return ending == CallOutcome::kTuned ? check->gain : 1; }

size_t TuneOutcome::Tuned() const {
  return static_cast<size_t>(std::count_if(lines.begin(), lines.end(), [](const TunedCall& line) {
    return line.ending == CallOutcome::kTuned;
  }));
}

size_t TuneOutcome::OutOfTime() const {
  return static_cast<size_t>(std::count_if(lines.begin(), lines.end(), [](const TunedCall& line) {
    return (line.no_time || line.untried > 0) && line.ending != CallOutcome::kTuned;
  }));
}

bool TunedCall::CannotTell() const {
  return ending == CallOutcome::kNotConfirmed && !no_time && check.has_value() &&
         check->launches_differ && check->interval.low < 1 && check->interval.high > 1;
}

size_t TuneOutcome::CannotTell() const {
  return static_cast<size_t>(std::count_if(
      lines.begin(), lines.end(), [](const TunedCall& line) { return line.CannotTell(); }));
}

bool TuneOutcome::Undecided() const {
  return Tuned() == 0 && std::all_of(lines.begin(), lines.end(),
                                     [](const TunedCall& line) { return line.no_time; });
}

double TuneOutcome::MeanGain() const {
  std::vector<double> gains;
  for (const TunedCall& line : lines) {
    if (line.ending != CallOutcome::kNoDefault) gains.push_back(line.Gain());
  }
  return GeometricMean(gains);
}

TuneOutcome::Changed TuneOutcome::ChangedGain() const {
  std::vector<double> gains;
  for (const std::vector<TunedCall>* some : {&lines, &between}) {
    for (const TunedCall& line : *some) {
      if (!line.config.IsDefault() && line.check.has_value() && line.check->gain > 0 &&
          line.check->trial.config == line.config) {
        gains.push_back(line.check->gain);
      }
    }
  }
  return {gains.size(), GeometricMean(gains)};
}

TuneOutcome::Total TuneOutcome::Weighted() const {
  Total total;
  for (const TunedCall& line : lines) {
    if (line.ending == CallOutcome::kNoDefault) continue;
    total.before += line.weight * line.library.median;
    total.after += line.weight * line.library.median / line.Gain();
  }
  return total;
}

std::string TuneOutcome::Headline(bool step) const {
  const size_t tuned = Tuned();
  const size_t all = lines.size();
  const size_t late = OutOfTime();
  const char* const noun = step ? "bucket" : "size";
  if (Undecided()) return "There was not enough time for a result; " + more + ".";
  const std::string undecided =
      late == 0 ? "" : Format("Undecided: {} of {} had no time; {}.", late, Count(all, noun), more);
  const std::string before = undecided.empty() ? "" : undecided + " ";
  if (const size_t unsteady = CannotTell(); tuned == 0 && unsteady > 0) {
    return before + Format(
                        "Cannot tell: at {} of {} the launches that verify a change differ too "
                        "much. The library's choices stay unchanged.",
                        unsteady, Count(all, noun));
  }
  if (tuned == 0) {
    return before + Format(
                        "{}: verification confirmed no configuration that is faster than the "
                        "library's own choice. The library's choices stay unchanged.",
                        late == 0 ? "Nothing to gain" : "Nothing found so far at the others");
  }
  std::string text = Format("{} of {} faster", tuned, Count(all, noun));
  if (!step) {
    const Changed changed = ChangedGain();
    text += Format(": {:.2f} x where the policy changes something (geometric mean of {})",
                   changed.gain, Count(changed.sizes, "verified size"));
    if (tuned < all) {
      text += Format(", {:.2f} x over all {}; the others are left to the library", MeanGain(), all);
    }
  } else if (whole.has_value() && !whole->gains.empty()) {
    text += Format(": the iteration is {:.2f} x as fast, verified", whole->gain);
  }
  return text + (undecided.empty() ? "" : ". " + undecided);
}

}  // namespace diapason::tune
