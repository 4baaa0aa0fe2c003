#include "mpi_tune/search_alone.h"

#include <algorithm>
#include <memory>

#include "base/stats.h"
#include "dataset/sample.h"
#include "domain/collectives.h"
#include "measure/measurer.h"
#include "search/make_measurer.h"
#include "search/search.h"
#include "search/sweep.h"

namespace diapason::mpi_tune {
namespace {

using search::CallCase;
using search::CandidateSamples;

constexpr double kLeastSeconds = 2;  // for one context

CallCase CaseOf(const Context& context) {
  CallCase one;
  one.trial.operation = OperationOf(context.collective);
  one.trial.bytes = context.usual_bytes;
  for (const Config& config : CandidatesOf(context)) one.candidates.push_back({config, ""});
  return one;
}

AloneFinding FindingOf(const CallCase& call_case, const std::vector<CandidateSamples>& samples) {
  AloneFinding finding;
  if (samples.empty() || samples[0].seconds.empty()) {
    finding.why = "the library's own choice could not be measured alone";
    return finding;
  }
  const double own = Median(samples[0].seconds);
  for (size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].outcome != dataset::SampleOutcome::kFine) {
      ++finding.failed;
      continue;
    }
    if (samples[i].seconds.empty()) continue;
    finding.ranked.push_back({call_case.candidates[i].config, own / Median(samples[i].seconds)});
  }
  std::stable_sort(finding.ranked.begin(), finding.ranked.end(),
                   [](const auto& a, const auto& b) { return a.gain > b.gain; });
  return finding;
}

// Contexts of communicators of one size, on the same ranks.
Status SearchSize(uint32_t ranks, const std::vector<Context>& contexts, double seconds,
                  const std::function<bool()>& goes_on, std::vector<AloneFinding>* findings) {
  search::MeasurerRequest request;
  request.ranks.backend = "mpi";
  request.ranks.ranks = static_cast<int>(ranks);
  ASSIGN_OR_RETURN(const std::unique_ptr<measure::Measurer> ranks_of_ours,
                   search::MakeMeasurer(request, 1));
  search::CalibratedMeasurer measurer(ranks_of_ours.get(), {});
  std::vector<CallCase> cases;
  std::vector<size_t> places;
  for (size_t i = 0; i < contexts.size(); ++i) {
    if (contexts[i].ranks != ranks) continue;
    cases.push_back(CaseOf(contexts[i]));
    places.push_back(i);
  }
  search::SearchOptions options;
  options.seconds = std::max(seconds, kLeastSeconds * static_cast<double>(cases.size()));
  search::SamplesByCandidate known;
  RETURN_IF_ERROR(search::SearchAdaptively(
      &measurer, cases, options,
      [&](size_t, size_t, const measure::Measurement&) { return goes_on(); }, &known));
  for (size_t i = 0; i < cases.size(); ++i) {
    (*findings)[places[i]] =
        FindingOf(cases[i], i < known.size() ? known[i] : std::vector<CandidateSamples>());
  }
  return {};
}

}  // namespace

Result<std::vector<AloneFinding>> SearchAlone(const std::vector<Context>& contexts, double seconds,
                                              const std::function<bool()>& goes_on) {
  std::vector<AloneFinding> findings(contexts.size());
  std::map<uint32_t, double> weights;
  double all = 0;
  for (const Context& context : contexts) {
    weights[context.ranks] += context.seconds;
    all += context.seconds;
  }
  for (const auto& [ranks, weight] : weights) {
    if (!goes_on()) break;
    const Status searched = SearchSize(ranks, contexts, seconds * weight / all, goes_on, &findings);
    if (searched.ok()) continue;
    for (size_t i = 0; i < contexts.size(); ++i) {
      if (contexts[i].ranks == ranks) findings[i].why = searched.message();
    }
  }
  return findings;
}

}  // namespace diapason::mpi_tune
