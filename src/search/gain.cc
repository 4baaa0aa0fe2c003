#include "search/gain.h"

#include <algorithm>

#include "base/normal.h"
#include "search/session.h"

namespace diapason::search {
namespace {

// What a lead is worth that is going to be known better, where it counts only from `least` on:
// the expectation of lead + spread * Z, Z normal, over where that is at least `least`.
double WorthKnowing(double lead, double spread, double least) {
  if (spread <= 0) return lead >= least ? lead : 0;
  const double z = (lead - least) / spread;
  return std::max(lead * NormalCdf(z) + spread * NormalDensity(z), 0.0);
}

}  // namespace

Standing Stand(const Surrogate& surrogate, size_t call_case,
               const std::vector<CandidateSamples>& known,
               const std::function<bool(size_t candidate)>& sampled) {
  const bool works = known[0].outcome == dataset::SampleOutcome::kFine;
  const double against = works ? surrogate.Mean(call_case, 0) : INFINITY;
  const double variance = surrogate.Variance(call_case, 0);
  Standing standing;
  standing.chosen_mean = against;
  for (size_t j = 1; j < known.size(); ++j) {
    if (known[j].outcome != dataset::SampleOutcome::kFine || !sampled(j)) continue;
    const double mean = surrogate.Mean(call_case, j);
    if (mean >= standing.chosen_mean) continue;
    const double apart = std::sqrt(variance + surrogate.Variance(call_case, j));
    if (works && against - mean < kClearlyAhead * apart) continue;
    standing.chosen = j;
    standing.chosen_mean = mean;
  }
  for (size_t j = 0; j < known.size(); ++j) {
    if (j == standing.chosen || known[j].outcome != dataset::SampleOutcome::kFine) continue;
    if (j > 0 && !sampled(j)) continue;
    const double mean = surrogate.Mean(call_case, j);
    if (mean >= standing.next_mean) continue;
    standing.next_mean = mean;
    standing.next_variance = surrogate.Variance(call_case, j);
  }
  return standing;
}

double ExpectedGain(const Surrogate& surrogate, size_t call_case, size_t candidate,
                    const Standing& standing) {
  const double variance = surrogate.Variance(call_case, candidate);
  // By how much the sample is going to move the mean.
  const double spread = variance / std::sqrt(variance + surrogate.Noise(call_case, candidate));
  const bool is_chosen = candidate == standing.chosen;
  if (is_chosen && !std::isfinite(standing.next_mean)) return 0;
  if (!std::isfinite(standing.chosen_mean)) return spread;
  const double mean = is_chosen ? standing.next_mean : surrogate.Mean(call_case, candidate);
  const double ahead = standing.chosen_mean - mean;
  if (standing.chosen != 0) return WorthKnowing(ahead, spread, 0);
  // To replace the default, a candidate has to be clearly ahead of it afterwards.
  const double other = is_chosen ? standing.next_variance : surrogate.Variance(call_case, 0);
  const double left = std::sqrt(std::max(variance - spread * spread, 0.0) + other);
  return WorthKnowing(ahead, spread, kClearlyAhead * left);
}

}  // namespace diapason::search
