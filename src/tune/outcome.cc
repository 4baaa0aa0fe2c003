#include <algorithm>
#include <cmath>

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

TuneOutcome::Total TuneOutcome::Weighted() const {
  Total total;
  for (const TunedCall& line : lines) {
    if (line.ending == CallOutcome::kNoDefault) continue;
    total.before += line.weight * line.library.median;
    total.after += line.weight * line.library.median / line.Gain();
  }
  return total;
}

}  // namespace diapason::tune
