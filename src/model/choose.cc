#include "model/choose.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace diapason::model {
namespace {

constexpr int kCoarseStep = 4;
// What was not measured has to promise so much more than what was.
constexpr double kPromise = 0.02;
constexpr double kShownConfidence = 0.95;  // each side of a gain's interval

double Score(const Candidate& candidate, double caution) {
  return candidate.estimate.log_seconds + caution * candidate.estimate.doubt;
}

std::string Percent(double share) { return Format("%.1f %%", 100 * share); }

// A candidate against the library's own choice.
struct Case {
  double gain = 0;   // log
  double doubt = 0;  // its standard deviation
  double margin = 0;
  bool supported = false;
};

bool Seen(const Candidate& candidate) { return candidate.basis <= Basis::kInterpolated; }

// What the luckiest of so many equals is expected to be ahead by, in standard deviations.
double Luck(size_t equals) {
  if (equals < 2) return 0;
  return NormalQuantile((static_cast<double>(equals) - 0.375) /
                        (static_cast<double>(equals) + 0.25));
}

// The fastest of several that are as fast looks faster than it is: by how much, in logarithms.
double LuckOf(const Outlook& outlook, const Candidate& candidate) {
  size_t equals = 0;
  for (const Candidate& other : outlook.candidates) {
    const double apart = std::fabs(other.estimate.log_seconds - candidate.estimate.log_seconds);
    if (Seen(other) && apart < 2 * Together(other.estimate.doubt, candidate.estimate.doubt)) {
      ++equals;
    }
  }
  return Luck(equals) * candidate.estimate.doubt;
}

Case Compare(const Outlook& outlook, const Candidate& candidate, const ChoiceOptions& options) {
  Case found;
  if (!outlook.standard.has_value()) {
    found.supported = true;
    return found;
  }
  const Estimate& standard = *outlook.standard;
  found.gain = standard.log_seconds - candidate.estimate.log_seconds;
  found.doubt = std::sqrt(candidate.estimate.doubt * candidate.estimate.doubt +
                          standard.doubt * standard.doubt + outlook.bend * outlook.bend +
                          outlook.shared * outlook.shared);
  const bool seen = Seen(candidate);
  const double confidence = seen ? options.confidence : options.confidence_unmeasured;
  found.margin = seen ? options.margin : std::max(options.margin, options.margin_unmeasured);
  found.supported = outlook.contrast && std::isfinite(found.doubt) &&
                    found.gain > std::log1p(found.margin) &&
                    found.gain >= NormalQuantile(confidence) * found.doubt;
  // Asked last: it looks at all candidates.
  if (found.supported && seen && options.discount_luck) {
    found.supported =
        found.gain - LuckOf(outlook, candidate) >= NormalQuantile(confidence) * found.doubt;
  }
  return found;
}

// Next to a member that was measured, one that was not is hardly different: the measured one,
// unless it is far behind.
const Candidate* Neighbour(const Outlook& outlook, const Candidate* candidate,
                           const ChoiceOptions& options) {
  constexpr double kNext = 1.25;
  const auto channels = static_cast<double>(candidate->config.channels);
  const Candidate* best = candidate;
  double limit = Score(*candidate, options.caution) + std::log1p(options.margin_unmeasured);
  for (const Candidate& other : outlook.candidates) {
    if (!Seen(other) || !(FamilyOf(other.config) == FamilyOf(candidate->config))) continue;
    const auto theirs = static_cast<double>(other.config.channels);
    if (theirs > channels * kNext || theirs * kNext < channels) continue;
    if (Score(other, options.caution) > limit) continue;
    if (!Compare(outlook, other, options).supported) continue;
    limit = Score(other, options.caution);
    best = &other;
  }
  return best;
}

// The best of those that the data support, or of all where they support none.
const Candidate* Best(const Outlook& outlook, const ChoiceOptions& options) {
  const auto better = [&](const Candidate& one, const Candidate* other) {
    return other == nullptr || Score(one, options.caution) < Score(*other, options.caution);
  };
  const Candidate* best = nullptr;
  const Candidate* supported = nullptr;
  const Candidate* seen = nullptr;
  for (const Candidate& one : outlook.candidates) {
    if (better(one, best)) best = &one;
    const bool leads = better(one, supported);
    const bool leads_seen = Seen(one) && better(one, seen);
    if ((!leads && !leads_seen) || !Compare(outlook, one, options).supported) continue;
    if (leads) supported = &one;
    if (leads_seen) seen = &one;
  }
  if (seen != nullptr &&
      Score(*seen, options.caution) < Score(*supported, options.caution) + std::log1p(kPromise)) {
    supported = seen;
  }
  if (supported != nullptr && !Seen(*supported)) supported = Neighbour(outlook, supported, options);
  if (supported != nullptr) best = supported;
  if (best == nullptr || options.tolerance <= 0) return best;
  const double limit = Score(*best, options.caution) + std::log1p(options.tolerance);
  const Candidate* fewest = best;
  for (const Candidate& one : outlook.candidates) {
    // What was measured is not given up for what was not.
    if (Score(one, options.caution) > limit || one.basis > best->basis ||
        !(FamilyOf(one.config) == FamilyOf(best->config)) ||
        one.config.channels >= fewest->config.channels) {
      continue;
    }
    if (supported == nullptr || Compare(outlook, one, options).supported) fewest = &one;
  }
  return fewest;
}

// The candidates that the coarse search looks at.
Outlook Coarse(const Outlook& outlook, double caution) {
  Outlook looked = outlook;
  looked.candidates.clear();
  for (size_t first = 0; first < outlook.candidates.size();) {
    size_t last = first;
    const Family family = FamilyOf(outlook.candidates[first].config);
    while (last < outlook.candidates.size() &&
           FamilyOf(outlook.candidates[last].config) == family) {
      ++last;
    }
    size_t best = first;
    for (size_t i = first; i < last; i += kCoarseStep) {
      if (Score(outlook.candidates[i], caution) < Score(outlook.candidates[best], caution))
        best = i;
    }
    for (size_t i = first; i < last; ++i) {
      const size_t distance = i > best ? i - best : best - i;
      if ((i - first) % kCoarseStep == 0 || distance < kCoarseStep) {
        looked.candidates.push_back(outlook.candidates[i]);
      }
    }
    first = last;
  }
  return looked;
}

}  // namespace

double NormalQuantile(double probability) {
  // Bisection on the distribution itself: exact enough, and asked a few times a command.
  double low = -10;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

Choice Choose(const Outlook& outlook, const ChoiceOptions& options) {
  Choice choice;
  choice.examined = outlook.candidates.size();
  const Candidate* const best = Best(outlook, options);
  if (best == nullptr) {
    choice.why = "no configuration was measured";
    return choice;
  }
  choice.best = *best;
  for (const Candidate& one : outlook.candidates) {
    if (FamilyOf(one.config) == FamilyOf(best->config)) continue;
    if (!choice.runner_up.has_value() ||
        Score(one, options.caution) < Score(*choice.runner_up, options.caution)) {
      choice.runner_up = one;
    }
  }
  if (!outlook.standard.has_value()) {
    if (!std::isfinite(outlook.shared)) {
      choice.why = "nobody knows how far measurements of other places hold here";
      return choice;
    }
    choice.leave_default = false;
    choice.why = "the library's own choice was not measured: what this gains is unknown";
    return choice;
  }
  const Case found = Compare(outlook, *best, options);
  const double gain = found.gain;
  const double shown = NormalQuantile(kShownConfidence);
  choice.gain = Choice::Gain{std::exp(gain), std::exp(gain - shown * found.doubt),
                             std::exp(gain + shown * found.doubt)};
  if (!found.supported) {
    if (!outlook.contrast) {
      choice.why = "the configurations differ by no more than noise";
    } else if (!std::isfinite(found.doubt)) {
      choice.why = "nobody knows how far measurements of other places hold here";
    } else if (gain <= std::log1p(found.margin)) {
      choice.why = gain <= 0 ? "nothing is faster than the library's own choice"
                             : "the gain is below the margin of " + Percent(found.margin);
    } else {
      choice.why =
          "the gain is within what the data leave open (" + Percent(std::expm1(found.doubt)) + ")";
    }
    return choice;
  }
  choice.leave_default = false;
  choice.why = std::string(BasisName(best->basis)) + ", " + Percent(std::expm1(gain)) + " faster";
  return choice;
}

Choice FindOptimalConfig(const Predictor& predictor, const Predictor::Request& request,
                         const SearchOptions& options) {
  const Outlook outlook = predictor.Look(request);
  if (!options.coarse) return Choose(outlook, options.choice);
  return Choose(Coarse(outlook, options.choice.caution), options.choice);
}

}  // namespace diapason::model
