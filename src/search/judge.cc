#include <algorithm>
#include <cmath>

#include "base/normal.h"
#include "search/search.h"
#include "search/session.h"
#include "search/surrogate.h"

namespace diapason::search {
namespace {

// A verdict counts as decided if its probability of being wrong is at most this.
constexpr double kDoubt = 0.05;
// And if both have at least this many samples: a single one may be an outlier.
constexpr size_t kLeastSeen = 2;

// The probability that a candidate with this lead (in standard deviations) is not ahead at all.
double Unlikely(double lead) { return NormalCdf(-lead); }

CaseVerdict JudgeOne(const Surrogate& surrogate, const std::vector<CandidateSamples>& known,
                     size_t call_case) {
  CaseVerdict verdict;
  const double against = surrogate.Mean(call_case, 0);
  verdict.against = verdict.seconds = std::exp(against);
  // A default that fails is beaten by anything that works.
  const bool broken = known[0].outcome != dataset::SampleOutcome::kFine;
  double rivals = 0;
  double nearest = INFINITY;  // how clearly the default is told from the others
  double best_lead = 0;
  double best_mean = INFINITY;
  for (size_t i = 1; i < known.size(); ++i) {
    if (known[i].outcome != dataset::SampleOutcome::kFine) continue;
    const double mean = surrogate.Mean(call_case, i);
    const double lead = (against - mean) / std::sqrt(surrogate.DifferenceVariance(call_case, 0, i));
    nearest = std::min(nearest, -lead);
    // A candidate needs a sample of its own to win; predictions from other cases do not suffice.
    if (known[i].seconds.empty()) continue;
    ++rivals;
    if ((!broken && lead < kClearlyAhead) || mean >= best_mean) continue;
    verdict.best = i;
    best_lead = lead;
    best_mean = mean;
  }
  if (verdict.best == 0) {
    verdict.decided = rivals > 0 && !known[0].seconds.empty() && Unlikely(nearest) <= kDoubt;
    return verdict;
  }
  verdict.seconds = std::exp(best_mean);
  // The best of many looks better than it is: each of them had a chance to be lucky.
  verdict.decided = broken || (known[0].seconds.size() >= kLeastSeen &&
                               known[verdict.best].seconds.size() >= kLeastSeen &&
                               rivals * Unlikely(best_lead) <= kDoubt);
  return verdict;
}

}  // namespace

std::vector<CaseVerdict> Judge(const std::vector<CallCase>& call_cases,
                               const SamplesByCandidate& known) {
  std::vector<CaseVerdict> verdicts(call_cases.size());
  if (!CheckContests(call_cases, known).ok()) {
    for (CaseVerdict& verdict : verdicts) verdict.decided = false;
    return verdicts;
  }
  Surrogate surrogate(call_cases);
  surrogate.Fit(known, true);
  for (size_t i = 0; i < call_cases.size(); ++i) verdicts[i] = JudgeOne(surrogate, known[i], i);
  return verdicts;
}

}  // namespace diapason::search
