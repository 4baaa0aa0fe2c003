#include "model/choose.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/normal.h"
#include "base/text.h"

namespace diapason::model {
namespace {

constexpr size_t kCoarseStep = 4;
constexpr double kShownConfidence = 0.95;  // one-sided confidence of a gain's interval

double Score(const PredictedConfig& candidate, double caution) {
  return candidate.estimate.log_seconds + caution * candidate.estimate.doubt;
}

std::string Percent(double share) { return Format("{:.1f} %", 100 * share); }

// A candidate compared with the library's own choice.
struct ChoiceCase {
  double gain = 0;   // log
  double doubt = 0;  // its standard deviation
  double margin = 0;
  bool supported = false;
};

bool Seen(const PredictedConfig& candidate) { return candidate.basis <= Basis::kInterpolated; }

// The expected lead of the best of `equals` equal candidates, in standard deviations.
double Luck(size_t equals) {
  if (equals < 2) return 0;
  return NormalQuantile((static_cast<double>(equals) - 0.375) /
                        (static_cast<double>(equals) + 0.25));
}

// Channel counts this close are predicted from the same measurements, and err alike.
using Alike = std::pair<ConfigFamily, int>;
Alike AlikeOf(const Config& config) {
  return {FamilyOf(config),
          static_cast<int>(std::lround(2 * std::log2(std::max(1, config.channels))))};
}

// The selection bias among candidates of equal speed, in logarithms. Measured ones err each by
// itself.
double LuckOf(const Prediction& prediction, const PredictedConfig& candidate) {
  size_t equals = 0;
  std::set<Alike> unseen;
  for (const PredictedConfig& other : prediction.candidates) {
    if (Seen(candidate) && !Seen(other)) continue;
    const double apart = std::fabs(other.estimate.log_seconds - candidate.estimate.log_seconds);
    if (apart >= 2 * Together(other.estimate.doubt, candidate.estimate.doubt)) continue;
    if (Seen(other) || unseen.insert(AlikeOf(other.config)).second) ++equals;
  }
  return Luck(equals) * candidate.estimate.doubt;
}

ChoiceCase Compare(const Prediction& prediction, const PredictedConfig& candidate,
                   const ChoiceOptions& options) {
  ChoiceCase found;
  if (!prediction.library_default.has_value()) {
    found.supported = true;
    return found;
  }
  const Estimate& library_default = *prediction.library_default;
  found.gain = library_default.log_seconds - candidate.estimate.log_seconds;
  found.doubt =
      std::sqrt(candidate.estimate.doubt * candidate.estimate.doubt +
                library_default.doubt * library_default.doubt + prediction.bend * prediction.bend +
                prediction.shared * prediction.shared);
  const bool seen = Seen(candidate);
  const bool between = candidate.basis == Basis::kInterpolated && options.confidence_between >= 0;
  const double confidence = between ? options.confidence_between
                            : seen  ? options.confidence
                                    : options.confidence_unmeasured;
  found.margin = seen ? options.margin : std::max(options.margin, options.margin_unmeasured);
  found.supported = prediction.contrast && std::isfinite(found.doubt) &&
                    found.gain > std::log1p(found.margin) &&
                    found.gain >= NormalQuantile(confidence) * found.doubt;
  // Last, because it examines all candidates.
  if (found.supported && seen && options.discount_luck) {
    found.supported =
        found.gain - LuckOf(prediction, candidate) >= NormalQuantile(confidence) * found.doubt;
  }
  return found;
}

// Whether the lower bound of an unmeasured candidate's speed is above the best of what is known:
// measured or interpolated configurations that the data support, and the library's own choice.
bool BeatsKnown(const PredictedConfig& candidate, const PredictedConfig& known,
                const ChoiceOptions& options) {
  return known.estimate.log_seconds - candidate.estimate.log_seconds >=
         NormalQuantile(options.confidence_unmeasured) *
             Together(candidate.estimate.doubt, known.estimate.doubt);
}

// A measured neighbour replaces an unmeasured candidate, unless it is far slower.
const PredictedConfig* Neighbour(const Prediction& prediction, const PredictedConfig* candidate,
                                 const ChoiceOptions& options) {
  constexpr double kNext = 1.25;
  const auto channels = static_cast<double>(candidate->config.channels);
  const PredictedConfig* best = candidate;
  double limit = Score(*candidate, options.caution) + std::log1p(options.margin_unmeasured);
  for (const PredictedConfig& other : prediction.candidates) {
    if (!Seen(other) || !(FamilyOf(other.config) == FamilyOf(candidate->config))) continue;
    const auto theirs = static_cast<double>(other.config.channels);
    if (theirs > channels * kNext || theirs * kNext < channels) continue;
    if (Score(other, options.caution) > limit) continue;
    if (!Compare(prediction, other, options).supported) continue;
    limit = Score(other, options.caution);
    best = &other;
  }
  return best;
}

// The best of the candidates that the data support, or of all if they support none.
const PredictedConfig* Best(const Prediction& prediction, const ChoiceOptions& options) {
  const auto better = [&](const PredictedConfig& one, const PredictedConfig* other) {
    return other == nullptr || Score(one, options.caution) < Score(*other, options.caution);
  };
  const PredictedConfig* best = nullptr;
  const PredictedConfig* supported = nullptr;
  const PredictedConfig* seen = nullptr;
  for (const PredictedConfig& one : prediction.candidates) {
    if (better(one, best)) best = &one;
    const bool leads = better(one, supported);
    const bool leads_seen = Seen(one) && better(one, seen);
    if ((!leads && !leads_seen) || !Compare(prediction, one, options).supported) continue;
    if (leads) supported = &one;
    if (leads_seen) seen = &one;
  }
  if (supported != nullptr && !Seen(*supported) && seen != nullptr &&
      !BeatsKnown(*supported, *seen, options)) {
    supported = seen;
  }
  if (supported != nullptr && !Seen(*supported)) {
    supported = Neighbour(prediction, supported, options);
  }
  if (supported != nullptr) best = supported;
  if (best == nullptr || options.tolerance <= 0) return best;
  const double limit = Score(*best, options.caution) + std::log1p(options.tolerance);
  const PredictedConfig* fewest = best;
  for (const PredictedConfig& one : prediction.candidates) {
    // A measured candidate is not replaced by an unmeasured one.
    if (Score(one, options.caution) > limit || one.basis > best->basis ||
        !(FamilyOf(one.config) == FamilyOf(best->config)) ||
        one.config.channels >= fewest->config.channels) {
      continue;
    }
    if (supported == nullptr || Compare(prediction, one, options).supported) fewest = &one;
  }
  return fewest;
}

ModelChoice::Gain GainLess(const ChoiceCase& found, double luck) {
  const double gain = found.gain - luck;
  const double shown = NormalQuantile(kShownConfidence) * found.doubt;
  return {std::exp(gain), std::exp(gain - shown), std::exp(gain + shown)};
}

// The candidates that the coarse search looks at.
Prediction Coarse(const Prediction& prediction, double caution) {
  Prediction looked = prediction;
  looked.candidates.clear();
  for (size_t first = 0; first < prediction.candidates.size();) {
    size_t last = first;
    const ConfigFamily family = FamilyOf(prediction.candidates[first].config);
    while (last < prediction.candidates.size() &&
           FamilyOf(prediction.candidates[last].config) == family) {
      ++last;
    }
    // Every fourth count, and the last one: more channels than any other is often the best.
    const auto looks_at = [&](size_t i) { return (i - first) % kCoarseStep == 0 || i + 1 == last; };
    size_t best = first;
    for (size_t i = first; i < last; ++i) {
      if (looks_at(i) &&
          Score(prediction.candidates[i], caution) < Score(prediction.candidates[best], caution))
        best = i;
    }
    for (size_t i = first; i < last; ++i) {
      const size_t distance = i > best ? i - best : best - i;
      if (looks_at(i) || distance < kCoarseStep) {
        looked.candidates.push_back(prediction.candidates[i]);
      }
    }
    first = last;
  }
  return looked;
}

}  // namespace

bool Supported(const Prediction& prediction, const PredictedConfig& candidate,
               const ChoiceOptions& options) {
  return Compare(prediction, candidate, options).supported;
}

std::optional<ModelChoice::Gain> GainOf(const Prediction& prediction,
                                        const PredictedConfig& candidate) {
  if (!prediction.library_default.has_value()) return {};
  return GainLess(Compare(prediction, candidate, {}), 0);
}

std::optional<ModelChoice::Gain> GainOfChosen(const Prediction& prediction,
                                              const PredictedConfig& candidate) {
  if (!prediction.library_default.has_value()) return {};
  const ChoiceCase found = Compare(prediction, candidate, {});
  return GainLess(found, found.gain > 0 ? std::min(found.gain, LuckOf(prediction, candidate)) : 0);
}

ModelChoice Choose(const Prediction& prediction, const ChoiceOptions& options) {
  ModelChoice choice;
  choice.examined = prediction.candidates.size();
  const PredictedConfig* const best = Best(prediction, options);
  if (best == nullptr) {
    choice.why = "no configuration was measured";
    return choice;
  }
  choice.best = *best;
  for (const PredictedConfig& one : prediction.candidates) {
    if (FamilyOf(one.config) == FamilyOf(best->config)) continue;
    if (!choice.runner_up.has_value() ||
        Score(one, options.caution) < Score(*choice.runner_up, options.caution)) {
      choice.runner_up = one;
    }
  }
  if (!prediction.library_default.has_value()) {
    if (!std::isfinite(prediction.shared)) {
      choice.why = "how far measurements of other places hold here is unknown";
      return choice;
    }
    choice.leave_default = false;
    choice.why = "the library's own choice was not measured: what this gains is unknown";
    return choice;
  }
  const ChoiceCase found = Compare(prediction, *best, options);
  choice.gain = GainOfChosen(prediction, *best);
  if (!found.supported) {
    if (!prediction.contrast) {
      choice.why = "the configurations differ by no more than noise";
    } else if (!std::isfinite(found.doubt)) {
      choice.why = best->basis == Basis::kExtrapolated
                       ? "the size is too far from the measured ones"
                       : "how far measurements of other places hold here is unknown";
    } else if (found.gain <= std::log1p(found.margin)) {
      choice.why = found.gain <= 0 ? "nothing is faster than the library's own choice"
                                   : "the gain is below the margin of " + Percent(found.margin);
    } else {
      choice.why =
          "the gain is within what the data leave open (" + Percent(std::expm1(found.doubt)) + ")";
    }
    return choice;
  }
  choice.leave_default = false;
  choice.why =
      std::string(BasisName(best->basis)) + ", " + Percent(choice.gain->expected - 1) + " faster";
  return choice;
}

ModelChoice FindOptimalConfig(const Predictor& predictor, const Predictor::Request& request,
                              const ChannelSearchOptions& options) {
  const Prediction prediction = predictor.Look(request);
  if (!options.coarse) return Choose(prediction, options.choice);
  return Choose(Coarse(prediction, options.choice.caution), options.choice);
}

}  // namespace diapason::model
